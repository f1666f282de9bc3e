"""A fake model that writes given texts and a fake constraint with a given rule, for tests of the loop around them."""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

import numpy as np

from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken, Verdict
from lacuna_model.decode.fill import Fill, Reader
from lacuna_model.tokenizer import Tokenizer

SECOND = 3  # the second candidate of every place


Item, Value = TypeVar("Item"), TypeVar("Value")


def collected(steps: Generator[Item, None, Value]) -> tuple[list[Item], Value]:
    """All that a generator yields, and its value."""
    seen = list[Item]()
    while True:
        try:
            seen.append(next(steps))
        except StopIteration as end:
            return seen, end.value


def sure(tokens: Sequence[int]) -> Run:
    """A run that gives each of ``tokens`` a probability of 0.95."""
    ids = np.array([[token, SECOND] for token in tokens]).reshape(len(tokens), 2)
    return Run(ids, np.log(np.array([[0.95, 0.04]] * len(tokens), dtype=np.float32)).reshape(len(tokens), 2))


class Scripted(Reader):
    """Writes one text for each gap, then its end token: ``rows`` tokens of each in a pass. Counts its passes."""

    def __init__(self, tokenizer: Tokenizer, *texts: str, rows: int = 1) -> None:
        self.passes = 0
        self.announced = False
        self.on_pass: Callable[[int], None] = lambda passes: None
        self.rows = rows
        self._wanted = [[*tokenizer.encode(text), *[tokenizer.eog_id] * 100] for text in texts]

    def announcing(self, fills: Sequence[Fill]) -> Generator[None, None, None]:
        yield from ()
        self.announced = True

    def withdraw(self) -> None:
        self.announced = False

    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        self.passes += 1
        self.on_pass(self.passes)
        pairs = zip(fills, self._wanted, strict=True)
        return [self._run(fill, wanted) if fill.is_open else None for fill, wanted in pairs]

    def _run(self, fill: Fill, wanted: Sequence[int]) -> Run:
        first = len(fill.tokens)
        return sure(wanted[first : min(first + self.rows, fill.most)])


class Strict(Constraint):
    """Takes the tokens of a run up to the first that ``allow``, given its gap, its place and itself, refuses."""

    active = True

    def __init__(self, tokenizer: Tokenizer, allow: Callable[[int, int, int], bool]) -> None:
        super().__init__(tokenizer)
        self.asked = 0
        self._allow = allow

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        self.asked += 1
        first = len(fills[gap].tokens)
        for place, token in enumerate(run.tokens, first):
            if not self._allow(gap, place, token):
                return Taken(place, stuck=True)
        return super().take(gap, fills, run)

    def verdict(self, fills: Sequence[FillSoFar], *, late: bool) -> Verdict:
        if late or all(fill.ended for fill in fills):
            return super().verdict(fills, late=late)
        return Verdict("no_valid_fill", None, "nothing may stand here", gap=0)
