"""A fill, the growing list of tokens of one gap; what the loop asks of the model that reads it."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.constraint import FillSoFar, Run, Taken, TokenText
from lacuna_model.core.context import Gap
from lacuna_model.core.params import Snapshot
from lacuna_model.core.stopping import StopRule

Key = tuple[int, int]
# Of the places where a fill may end, so many are asked about at once.
MAX_ENDS = 3


class FillStatus(Enum):
    """Whether a fill goes on, or what ended it; one that is stuck waits for the constraint's verdict."""

    OPEN = "open"
    ENDED_BY_MODEL = "ended by the model"
    ENDED_BY_RULE = "ended by a stop rule"
    ENDED_BY_CONSTRAINT = "ended by the constraint"
    OUT_OF_BUDGET = "out of budget"
    STUCK = "stuck"


class AllowedTokens(Protocol):
    """Which tokens may follow others in a gap with a rule of its own."""

    def after(self, written: Sequence[int]) -> NDArray[np.int64] | None:
        """The tokens that may follow those ``written``, the end-of-gap among them; None if the rule does not tell."""
        ...


@dataclass(slots=True)
class Fill:
    """The fill of one gap: at most ``most`` tokens, and no end before ``least``.

    Each candidate for a gap has a fill of its own, which begins with the tokens of ``begin``. One that is ``indented``
    begins with no further blanks. By place, ``log_probs`` has the log-probability that the model gave the token, behind
    the last one that of the end, and ``rivals`` the next best token with how many nats it was below, where the best one
    was taken.
    """

    gap: Gap
    most: int
    least: int = 0
    stop: StopRule | None = None
    allowed: AllowedTokens | None = None
    candidate: int = 0
    begin: Sequence[int] = ()
    indented: bool = False
    tokens: list[int] = field(default_factory=list)
    log_probs: dict[int, float] = field(default_factory=dict)
    rivals: dict[int, tuple[float, int]] = field(default_factory=dict)
    status: FillStatus = FillStatus.OPEN

    @property
    def key(self) -> Key:
        """Identifies the fill within its request: its candidate, and the number of its gap."""
        return self.candidate, self.gap.index

    @property
    def is_open(self) -> bool:
        """Whether more tokens may follow."""
        return self.status is FillStatus.OPEN

    @property
    def has_ended(self) -> bool:
        """Whether its tokens are the whole fill."""
        return self.status not in (FillStatus.OPEN, FillStatus.STUCK)

    @property
    def begun(self) -> Sequence[int]:
        """The tokens of ``begin`` that are still to be written."""
        return self.begin[len(self.tokens) : self.most]

    def written(self) -> FillSoFar:
        """The fill as a constraint sees it."""
        return FillSoFar(tuple(self.tokens), self.most, self.has_ended, self.gap.prefix)

    def apply(self, taken: Taken, run: Run, eog_id: int) -> None:
        """Become what was ``taken`` of a ``run`` behind the tokens, as the constraint says.

        What was read behind the first token that is not taken says nothing.
        """
        first = len(self.tokens)
        run = run.part(0, max(taken.kept - first + 1, 0))
        new = [*run.tokens[: max(taken.kept - first, 0)], *taken.write]
        del self.tokens[taken.kept :]
        for token in new:
            self.remember(len(self.tokens), token, run, first)
            self.tokens.append(token)
        if taken.ends:
            end = len(self.tokens)
            self.remember(end, eog_id, run, first)
            self.status = FillStatus.ENDED_BY_MODEL if end in self.rivals else FillStatus.ENDED_BY_CONSTRAINT

    def remember(self, place: int, token: int, run: Run, first: int) -> None:
        """Record how likely a token at a place is by a run that begins at place ``first``, and its rival."""
        at = place - first
        self.log_probs[place] = run.log_prob(at, token)
        self.rivals.pop(place, None)
        if 0 <= at < len(run) and run.ids[at, 0] == token:
            self.rivals[place] = float(run.logp[at, 0] - run.logp[at, 1]), int(run.ids[at, 1])

    def ends(self, tokens: TokenText, coming: Sequence[int] = ()) -> list[list[int]]:
        """The tokens of the fills where the stop rule may end it, the shortest first: at most ``MAX_ENDS``.

        ``coming`` tokens, the end-of-gap perhaps the last of them, would be taken next. Where the fill ends anyway is
        not among them.
        """
        if self.stop is None:
            return []
        final = self.has_ended or coming[-1:] == [tokens.eog_id]
        text = self.text(tokens, coming[:-1] if final and coming else coming)
        if text is None:
            return []
        found = list(dict.fromkeys(kept for kept in self.stop.ends(text, final=final) if kept != text))
        return self._fills(tokens, found if len(found) <= MAX_ENDS else [*found[: MAX_ENDS - 1], found[-1]])

    def whole(self, tokens: TokenText) -> list[list[int]]:
        """The tokens of the whole statements of a fill that has run into its budget; empty where that is not so.

        Where the budget was almost spent, the constraint may have ended it.
        """
        last_token = self.status is FillStatus.ENDED_BY_CONSTRAINT and len(self.tokens) >= self.most - 1
        if self.stop is None or not (last_token or self.status is FillStatus.OUT_OF_BUDGET):
            return []
        text = self.text(tokens)
        return self._fills(tokens, list(self.stop.whole(text))) if text is not None else []

    def text(self, tokens: TokenText, more: Sequence[int] = ()) -> str | None:
        """The text of the tokens and ``more``; None before the healed text is written."""
        prefix = self.gap.prefix.decode()
        written = tokens.decode_bytes([*self.tokens, *more]).decode("utf-8", errors="ignore")
        return written.removeprefix(prefix) if written.startswith(prefix) else None

    def _fills(self, tokens: TokenText, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts that the gap may hold."""
        fills = (tokens.encode(self.gap.prefix.decode() + text) for text in texts)
        return [fill for fill in fills if self.least <= len(fill) <= self.most]

    def end_with(self, tokens: Sequence[int]) -> None:
        """End by rule, with these tokens."""
        self.tokens, self.status = list(tokens), FillStatus.ENDED_BY_RULE


@dataclass(frozen=True, slots=True)
class Drafted:
    """A token of a draft with the probability that it holds; None for a mask."""

    token: int | None
    probability: float = 0.0


class Reader(Protocol):
    """Reads the fills of all gaps of a request in shared passes, of which it has made so many ``passes``.

    By itself a reader shares no passes, drafts nothing, and has nothing to take back.
    """

    passes: int

    def announcing(self, fills: Sequence[Fill]) -> Generator[None, None, None]:
        """Say that ``read`` will be called with these fills, so that other requests may share the pass.

        It pauses where others may have their turn first: while it reads what drafts need, or so that they share that.
        """
        yield from ()

    def going_ahead(self, fills: Sequence[Fill], runs: Sequence[Run | None]) -> Iterable[None]:
        """Begin the next pass as if the whole ``runs`` were taken, where a device works while the host asks for that.

        What is announced then for other fills takes the place of it. It pauses as ``announcing`` does.
        """
        return ()

    def drafted(self, fill: Fill) -> Sequence[Drafted]:
        """What is drafted behind the tokens of a fill: what the announced pass verifies, or a guess so far."""
        return ()

    def withdraw(self) -> None:
        """Take back what was announced and not read: the loop ends."""
        return

    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        """After one pass, the run behind the tokens of every fill; None for one that has ended or waits."""
        ...


Item = TypeVar("Item")
Value = TypeVar("Value")


def shown(loop: Generator[Item, None, Value], show: Callable[[Item], Snapshot]) -> Generator[Snapshot, None, Value]:
    """The same generator, with what ``show`` makes of each pause; with it, the ``loop`` is closed."""
    with closing(loop):
        while True:
            try:
                seen = next(loop)
            except StopIteration as end:
                value: Value = end.value
                return value
            yield show(seen)
