from collections.abc import Sequence
from itertools import cycle
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.scripted import Scripted, Strict, collected

from lacuna_model.core.constraint import Constraint, FillSoFar, Run, Taken
from lacuna_model.core.context import Gap, finished
from lacuna_model.core.params import Snapshot
from lacuna_model.core.stopping import StopRule
from lacuna_model.decode import denoise as loop
from lacuna_model.decode.candidates import Attempt, Candidates
from lacuna_model.decode.denoise import LoopEnd, denoise
from lacuna_model.decode.fill import Drafted, Fill, FillStatus
from lacuna_model.decode.gate import Judgement
from lacuna_model.tokenizer import Tokenizer

TEXTS = ("value = 1\n", "for x in name:\n    total")


def opened(gaps: int = 1, candidates: int = 1, most: int = 64, stop: StopRule | None = None) -> list[Fill]:
    return [Fill(Gap(gap), most, 0, stop, None, candidate) for candidate in range(candidates) for gap in range(gaps)]


def run(
    model: Scripted,
    fills: Sequence[Fill],
    tokenizer: Tokenizer,
    *constraints: Constraint,
    deadline: float | None = None,
) -> LoopEnd:
    asked = constraints or [Constraint(tokenizer)]
    return finished(denoise(model, fills, asked, tokenizer, deadline=deadline))


def snapshots(model: Scripted, tokenizer: Tokenizer, constraint: Constraint, gaps: int) -> list[Snapshot]:
    attempt = Attempt(model, opened(gaps), [constraint])
    found = Candidates(lambda begins: attempt, gaps, tokenizer, 1, lambda delivered, fill: Judgement((1.0,)))
    return collected(found.denoise(None))[0]


def test_the_next_pass_is_announced_and_taken_back_where_the_loop_ends(tokenizer: Tokenizer) -> None:
    model = Scripted(tokenizer, *TEXTS)
    steps = denoise(model, opened(2), [Constraint(tokenizer)], tokenizer, deadline=None)
    next(steps)
    assert model.announced
    steps.close()
    assert not model.announced


def test_the_deadline_is_checked_behind_every_line(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = Strict(tokenizer, lambda *_: True)
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(constraint.asked))
    model, fills = Scripted(tokenizer, "x = 1\ny = 2\nz = 3\n", rows=64), opened()
    ending = run(model, fills, tokenizer, constraint, deadline=2.0)
    assert (ending.outcome, model.passes, constraint.asked) == ("deadline", 1, 2)
    assert fills[0].text(tokenizer) == "x = 1\ny = 2\n"


def test_a_stuck_candidate_is_left_to_its_verdict_and_the_others_go_on(tokenizer: Tokenizer) -> None:
    """All gaps of the candidate take what the same pass has read for them."""
    strict, free = Strict(tokenizer, lambda gap, place, _: gap or place < 2), Constraint(tokenizer)
    fills = opened(2, candidates=2)
    ending = run(Scripted(tokenizer, "abcdef", "uvwxyz", *TEXTS), fills, tokenizer, strict, free)
    assert [fill.text(tokenizer) for fill in fills] == ["ab", "uvw", *TEXTS]
    assert [fill.status for fill in fills] == [*[FillStatus.STUCK] * 2, *[FillStatus.ENDED_BY_MODEL] * 2]
    assert [verdict.fills for verdict in ending.verdicts] == [None, TEXTS]
    assert (ending.outcome, ending.verdict) == ("ok", ending.verdicts[1])


def test_others_have_their_turn_within_a_long_step(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    constraint = Strict(tokenizer, lambda *_: True)
    monkeypatch.setattr(loop.time, "monotonic", lambda: constraint.asked * 0.6 * loop.STEP_SECONDS)
    found = snapshots(Scripted(tokenizer, *"abcd", rows=2), tokenizer, constraint, 4)
    assert [(seen.step, seen.fills) for seen in found] == [(0, ("a", "b", "", "")), (1, ("a", "b", "c", "d"))]


class Drafting(Scripted):
    """Drafts two tokens, and a mask behind them."""

    def drafted(self, fill: Fill) -> list[Drafted]:
        first = len(fill.tokens)
        return [*(Drafted(token, 0.5) for token in self._wanted[fill.gap.index][first : first + 2]), Drafted(None)]


def test_snapshots_show_what_is_taken_and_what_is_drafted(tokenizer: Tokenizer) -> None:
    found = snapshots(Drafting(tokenizer, "x = 1\n", "y"), tokenizer, Constraint(tokenizer), 2)
    first, last = found[0], found[-1]
    assert [snapshot.step for snapshot in found] == list(range(1, len(found) + 1))
    assert first.fills[0] == "x = "
    assert [slot.state for slot in first.slots[0]] == ["committed", "draft", "draft", "mask"]
    assert [slot.text for slot in first.slots[0]] == ["x", " =", " ", ""]
    assert [slot.confidence for slot in first.slots[0]] == pytest.approx([0.95, 0.5, 0.5, 0.0])
    assert last.fills == ("x = 1\n", "y")
    assert {slot.state for slots in last.slots for slot in slots} == {"committed"}
    for snapshot in found:
        assert snapshot.fills == tuple("".join(slot.text for slot in slots) for slots in snapshot.slots)


class Freely(Scripted):
    """Writes at random, as a function of the tokens before, in runs of the lengths ``cuts``."""

    def __init__(self, tokenizer: Tokenizer, seed: int, cuts: Sequence[int]) -> None:
        super().__init__(tokenizer)
        self._seed, self._cuts = seed, cycle(cuts)
        self._words = [*tokenizer.encode("x = 1\n    return y\n))"), tokenizer.eog_id]

    def read(self, fills: Sequence[Fill]) -> list[Run | None]:
        self.passes += 1
        return [self._of(fill, next(self._cuts)) if fill.is_open else None for fill in fills]

    def _of(self, fill: Fill, rows: int) -> Run:
        ids = list[list[int]]()
        for _ in range(min(rows, fill.most - len(fill.tokens))):
            before = [*fill.tokens, *(row[0] for row in ids)]
            ids.append(Random(repr((self._seed, fill.key, before))).sample(self._words, 3))
        return Run(np.array(ids), np.log(np.array([[0.6, 0.3, 0.1]] * len(ids), dtype=np.float32)))


class Whimsical(Constraint):
    """Takes a token, swaps it, goes back, ends the fill or refuses all, at random: a function of what is written."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        super().__init__(tokenizer)
        self._seed, self._times_back = seed, 0

    def take(self, gap: int, fills: Sequence[FillSoFar], run: Run) -> Taken:
        known = list(fills[gap].tokens)
        for best, second, _ in run.ids.tolist():
            random = Random(repr((self._seed, known, best, self._times_back)))
            whim = random.random()
            if whim < 0.05 and self._times_back < 4:
                self._times_back += 1
                return Taken(random.randrange(len(known) + 1))
            if whim > 0.98:
                return Taken(len(known), stuck=True)
            if self._tokens.eog_id in (best, second if whim > 0.9 else best):
                return Taken(len(known), ends=True)
            if whim > 0.9:
                return Taken(len(known), (second,), ends=whim > 0.97)
            known.append(best)
        return Taken(len(known))

    def may_end(self, gap: int, fill: FillSoFar) -> bool:
        return Random(repr((self._seed, fill.tokens))).random() < 0.5


# Where a fill may end with a line, and within one.
RULES = StopRule("def f(x):\n    ", "\n    return y\n"), StopRule("x = f(g(", "))\n")


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(RULES), st.integers(0, 10**6), st.lists(st.integers(1, 9), min_size=1), st.integers(1, 40))
def test_a_fill_does_not_depend_on_how_far_a_pass_has_read(
    tokenizer: Tokenizer, stop: StopRule, seed: int, cuts: list[int], most: int
) -> None:
    found: list[object] = []
    for lengths in ([1], cuts):
        fills = opened(candidates=2, most=most, stop=stop)
        constraints = [Whimsical(tokenizer, seed), Whimsical(tokenizer, seed + 1)]
        ending = run(Freely(tokenizer, seed, lengths), fills, tokenizer, *constraints)
        said = [[(one.log_probs.get(at), one.rivals.get(at)) for at in range(len(one.tokens))] for one in fills]
        found.append(([(one.tokens, one.status) for one in fills], said, ending.outcome, ending.verdicts))
    assert found[0] == found[1]
