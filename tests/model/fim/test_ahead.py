"""The pass that begins before the constraint is asked: it changes no fill, and hides the time of the constraint."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import started, tiny
from tests.model.elsewhere import LEAVING, Elsewhere

from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken
from lacuna_model.core.context import finished
from lacuna_model.core.params import DecodeOptions, Snapshot
from lacuna_model.decode.denoise import LoopEnd, denoise
from lacuna_model.decode.fill import Fill
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.costs import AcceptanceRates
from lacuna_model.fim.drafts import Drafts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.reading import FimReader
from lacuna_model.network.transformer import Transformer

from . import tiny_fim
from .test_passes import SEEDS, natives

__all__ = ["natives"]
BUDGET = 12
Steps = Iterator[Snapshot]


class Fickle(Constraint):
    """Takes a run, but where a number of token and place says otherwise: another token, an end, or fewer ones.

    What becomes of a fill does not depend on how it is cut into runs.
    """

    def __init__(self, model: LoadedFim, seed: int) -> None:
        super().__init__(model.tokenizer)
        self._eog_id, self._specials, self._seed = model.tokenizer.eog_id, model.tokenizer.special_ids, seed
        self._left = set[tuple[int, int]]()

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        first = len(fills[gap].tokens)
        for place, (token, other) in enumerate(run.ids[:, :2].tolist(), first):
            if token == self._eog_id:
                break
            chance = (token * 31 + place * 7 + gap * 5 + self._seed * 13) % 11
            if chance == 0:
                return Taken(place, ends=True) if other in self._specials else Taken(place, (other,))
            if chance == 1 and (gap, place) not in self._left:
                self._left.add((gap, place))
                return Taken(max(place - 2, 0))
        return super().take(gap, fills, run)


def loop(model: LoadedFim, constraint: Constraint, gaps: int = 1, **options: Any) -> tuple[list[Fill], Any]:
    """The fills of some gaps of a text, and the loop that writes them."""
    cuts = [0, *(cut for gap in range(gaps) for cut in (60 + 60 * gap, 70 + 60 * gap)), 60 * gaps + 90]
    layout = tiny_fim.laid_out(model, *(tiny.CODE[cuts[n] : cuts[n + 1]] for n in range(0, len(cuts), 2)))
    context = FimContext(model.tracks(), model.tokenizer, model.fim)
    finished(context.updating(layout))
    drafts = Drafts(layout, (), model.costs, AcceptanceRates(), model.tokenizer.special_ids)
    reader = FimReader(model, context, drafts, layout, DecodeOptions(**options))
    fills = [Fill(gap, BUDGET, int(bool(gap.prefix))) for gap in layout.gaps]
    steps = denoise(reader, fills, [constraint], model.tokenizer, deadline=None)
    return fills, steps


def written(fills: Sequence[Fill]) -> list[object]:
    return [(fill.tokens, fill.status, fill.log_probs, fill.rivals) for fill in fills]


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, SEEDS - 1),
    fickle=st.integers(0, 99),
    gaps=st.integers(1, 2),
    temperature=st.sampled_from([0.0, 0.9]),
)
def test_whatever_the_constraint_takes_a_fill_is_the_same_bit_for_bit(
    natives: list[LoadedFim],
    seed: int,
    fickle: int,
    gaps: int,
    temperature: float,
) -> None:
    """Passes that go on beside the host: here they end before that does anything else."""
    found = []
    for is_asynchronous in (False, True):
        network = copy.copy(natives[seed].transformer)
        network.is_asynchronous = is_asynchronous
        model = replace(natives[seed], transformer=network)
        fills, steps = loop(model, Fickle(model, fickle), gaps, temperature=temperature, seed=fickle)
        ending: LoopEnd = finished(steps)
        found.append((written(fills), ending.verdict))
    assert found[0] == found[1]


class Stream(Elsewhere):
    """Notes where the host waits for the device: it copies what is there."""

    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self._events = events

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in LEAVING and getattr(args[0], "is_elsewhere", False):
            self._events.append("waited")
        return super().__torch_function__(func, types, args, kwargs)


class Asked(Constraint):
    """Notes when it is asked; it takes all, or once nothing behind the third token."""

    def __init__(self, model: LoadedFim, events: list[str], *, refuses: bool = False) -> None:
        super().__init__(model.tokenizer)
        self._events, self._refuses = events, refuses

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        self._events.append("asked")
        if self._refuses and len(fills[gap].tokens) == 3:
            self._refuses = False
            return Taken(3)
        return super().take(gap, fills, run)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What happens in order on the pretended device, and on the host."""
    found: list[str] = []
    started.pretend(monkeypatch)
    monkeypatch.setattr(Drafts, "draft", lambda *_: [])
    real = Transformer.read

    def read(self: Transformer, *arguments: Any) -> Any:
        found.append("given")
        return real(self, *arguments)

    monkeypatch.setattr(Transformer, "read", read)
    with Stream(found):
        yield found


def test_a_pass_that_the_constraint_refuses_is_dropped_and_nobody_waits_for_it(events: list[str]) -> None:
    model = started.least()
    fills, steps = loop(model, Asked(model, events, refuses=True))
    del events[:]
    finished(steps)
    passes = events.count("given") - 1
    assert len(fills[0].tokens) - 2 < passes > 3
    dropped = ["given", "asked", "given", "waited"]
    around = ["given", "asked", "waited"]
    assert events == ["given", "waited", *around * 2, *dropped, *around * (passes - 4), "asked"]


def test_the_constraints_of_all_requests_are_asked_beside_one_pass(events: list[str]) -> None:
    model = started.least()
    loops = [loop(model, Asked(model, events))[1] for _ in range(2)]
    del events[:]
    open_loops = list(loops)
    while open_loops:
        for steps in list(open_loops):
            if next(steps, "over"):
                open_loops.remove(steps)
    passes = "".join({"given": "(", "asked": "a", "waited": ")"}[event] for event in events).split("(")
    first, steady, last = passes[:5], passes[5:-2], passes[-2:]  # they begin one after the other
    assert len(steady) > len(first) + len(last) - 1
    assert set(steady) == {"aa)"}
