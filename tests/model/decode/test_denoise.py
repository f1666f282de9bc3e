import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.model.scripted import SECOND, ReadsAhead, Scripted, Strict

from lacuna_model.core.constraint import Commit, Constraint, GapView, Remask, Unconstrained
from lacuna_model.core.context import Gap
from lacuna_model.core.params import DecodeOptions, Snapshot
from lacuna_model.core.stopping import LineLimit, StopRule
from lacuna_model.decode import denoise as loop
from lacuna_model.decode.canvas import Canvas, Marginals
from lacuna_model.decode.denoise import LoopEnd, denoise
from lacuna_model.engine import never
from lacuna_model.tokens.tokenizer import Tokenizer

TEXTS = ("value = 1\n", "for x in name:\n    total")


def canvases(count: int, block_size: int = 8, budget: int = 64) -> list[Canvas]:
    return [Canvas(Gap(5 + 100 * i), block_size, budget) for i in range(count)]


def run(
    model: Scripted,
    opened: Sequence[Canvas],
    tokenizer: Tokenizer,
    constraint: Constraint | None = None,
    *,
    cancelled: Callable[[], bool] = never,
    deadline: float | None = None,
    **options: object,
) -> tuple[list[Snapshot], LoopEnd]:
    stream = denoise(
        model,
        opened,
        constraint or Unconstrained(tokenizer),
        tokenizer,
        DecodeOptions(**options),
        cancelled=cancelled,
        deadline=deadline,
    )
    snapshots = []
    while True:
        try:
            snapshots.append(next(stream))
        except StopIteration as end:
            return snapshots, end.value


class Slow(Unconstrained):
    """A constraint that takes two milliseconds for every answer."""

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        time.sleep(0.002)
        return super().admit(gaps, proposal)


def test_the_time_that_the_loop_waits_for_a_constraint_is_reported(tokenizer: Tokenizer) -> None:
    snapshots, ending = run(Scripted(tokenizer, TEXTS[0]), canvases(1), tokenizer, Slow(tokenizer), schedule="single")
    waited = [0.0, *(snapshot.constraint_ms for snapshot in snapshots)]
    assert all(after - before >= 2.0 for before, after in pairwise(waited))
    assert ending.counts.constraint_ms >= waited[-1]


@pytest.mark.parametrize("schedule", ["entropy", "confidence", "single"])
@pytest.mark.parametrize("block_size", [1, 4, 8, 64])
def test_every_gap_gets_the_text_that_the_model_proposes(tokenizer: Tokenizer, schedule: str, block_size: int) -> None:
    model = Scripted(tokenizer, *TEXTS)
    snapshots, ending = run(model, canvases(2, block_size), tokenizer, schedule=schedule)
    assert ending.outcome == "ok"
    assert ending.verdict.fills == TEXTS
    assert ending.counts.steps == len(snapshots) == model.passes
    assert snapshots[-1].fills == TEXTS


def test_gaps_of_different_length_are_filled_side_by_side(tokenizer: Tokenizer) -> None:
    model = Scripted(tokenizer, *TEXTS)
    short, long = Canvas(Gap(5), 8, 3), Canvas(Gap(200), 8, 30)
    _, ending = run(model, [short, long], tokenizer, schedule="single")
    assert ending.verdict.fills == (tokenizer.decode(tokenizer.encode(TEXTS[0])[:3]), TEXTS[1])


def test_blocks_of_all_gaps_are_opened_together(tokenizer: Tokenizer) -> None:
    model = Scripted(tokenizer, "x" * 5, "y" * 20)
    opened = canvases(2, block_size=4)
    sizes: list[tuple[int, ...]] = []
    model.on_pass = lambda _: sizes.append(tuple(len(canvas.done) for canvas in opened))
    run(model, opened, tokenizer, schedule="single")
    assert [done for i, done in enumerate(sizes) if i == 0 or sizes[i - 1] != done] == [
        (0, 0), (4, 4), (4, 8), (4, 12), (4, 16), (4, 20)
    ]  # fmt: skip
    assert model.blocks == 5


def test_a_budget_ends_a_fill_that_has_no_end(tokenizer: Tokenizer) -> None:
    _, ending = run(Scripted(tokenizer, "x" * 90), canvases(1, 8, budget=20), tokenizer)
    assert (ending.outcome, ending.verdict.fills) == ("ok", ("x" * 20,))


@pytest.mark.parametrize(("steps", "passes"), [(1, 3), (2, 6), (4, 12), (8, 24)])
def test_steps_bound_the_passes_of_a_block(tokenizer: Tokenizer, steps: int, passes: int) -> None:
    model = Scripted(tokenizer, "x" * 24, entropy=9.0)
    _, ending = run(model, canvases(1, 8, budget=24), tokenizer, steps=steps, entropy_bound=0.0)
    assert (model.passes, ending.verdict.fills) == (passes, ("x" * 24,))


def test_cancel_is_checked_before_every_pass(tokenizer: Tokenizer) -> None:
    for last in (0, 1, 3):
        model = Scripted(tokenizer, *TEXTS)
        _, ending = run(
            model, canvases(2), tokenizer, schedule="single", cancelled=lambda m=model, n=last: m.passes >= n
        )
        assert model.passes == last
        assert (ending.outcome, ending.verdict.fills) == ("cancelled", None)
        assert ending.counts.steps == last


def test_the_next_pass_is_announced_and_taken_back_where_the_loop_ends(tokenizer: Tokenizer) -> None:
    model = Scripted(tokenizer, *TEXTS)
    steps = loop.denoise(
        model,
        canvases(2),
        Unconstrained(tokenizer),
        tokenizer,
        DecodeOptions(schedule="single"),
        cancelled=lambda: False,
        deadline=None,
    )
    next(steps)
    assert model.announced
    steps.close()
    assert not model.announced


def test_the_deadline_is_checked_before_every_pass(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(loop.time, "monotonic", lambda: now)
    model = Scripted(tokenizer, "x = 1\ny = 2\n")

    def tick(passes: int) -> None:
        nonlocal now
        now = float(passes)

    model.on_pass = tick
    _, ending = run(model, canvases(1), tokenizer, schedule="single", deadline=7.0)
    assert model.passes == 7
    # The fill is cut after its last complete line.
    assert (ending.outcome, ending.verdict.fills) == ("deadline", ("x = 1\n",))


def test_after_the_deadline_no_pass_is_made(tokenizer: Tokenizer) -> None:
    model = Scripted(tokenizer, "x = 1\n")
    snapshots, ending = run(model, canvases(1), tokenizer, deadline=time.monotonic() - 1)
    assert (model.passes, snapshots, ending.verdict.fills) == (0, [], ("",))


def test_a_constraint_that_refuses_everything_ends_with_its_verdict(tokenizer: Tokenizer) -> None:
    model, constraint = Scripted(tokenizer, "x = 1\n"), Strict(tokenizer, lambda commit: False)
    snapshots, ending = run(model, canvases(1), tokenizer, constraint)
    assert (ending.outcome, ending.verdict.fills) == ("no_valid_fill", None)
    assert ending.verdict.message == "nothing may stand here"
    # It is asked once: another pass would give the same.
    assert (model.passes, constraint.asked, snapshots) == (1, 1, [])


@pytest.mark.parametrize("outcome", ["cancelled", "deadline"])
def test_cancel_and_deadline_are_checked_while_nothing_is_admitted(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    constraint = Strict(tokenizer, lambda commit: False)
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(constraint.asked) if outcome == "deadline" else 0.0)
    _, ending = run(
        Scripted(tokenizer, "x = 1\n"),
        canvases(1),
        tokenizer,
        constraint,
        cancelled=lambda: outcome == "cancelled" and constraint.asked == 1,
        deadline=1.0,
    )
    assert (ending.outcome, constraint.asked) == (outcome, 1)


def test_a_constraint_may_swap_a_token(tokenizer: Tokenizer) -> None:
    constraint = Strict(tokenizer, lambda commit: True)
    constraint.admit = lambda gaps, proposal: [  # type: ignore[method-assign]
        type(commit)(commit.gap, commit.slot, SECOND if commit.slot == 1 else commit.token) for commit in proposal
    ]
    _, ending = run(Scripted(tokenizer, "x = 1\n"), canvases(1), tokenizer, constraint, schedule="single")
    assert ending.verdict.fills == (f"x{tokenizer.decode([SECOND])} 1\n",)


Question = tuple[tuple[tuple[int, ...], tuple[int | None, ...], list[list[int]]], list[Commit]]


class Asked(Strict):
    """Swaps the token of every tenth question, and remembers what it was asked about the first gap."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer, lambda commit: True)
        self.questions: list[Question] = []

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> list[Commit]:
        self.questions.append(((gaps[0].done, gaps[0].slots, gaps[0].ids.tolist()), list(proposal)))
        admitted = super().admit(gaps, proposal)
        return [replace(one, token=SECOND) for one in admitted] if self.asked % 10 == 9 else admitted


def test_a_constraint_is_asked_the_same_however_far_a_pass_has_read(tokenizer: Tokenizer) -> None:
    asked: list[list[Question]] = []
    passes: list[int] = []
    for rows in (1, 3, 8):
        model, constraint = ReadsAhead(tokenizer, "abcdefghijklmnopqrstuvwxyz", rows=rows), Asked(tokenizer)
        _, ending = run(model, canvases(1), tokenizer, constraint)
        assert ending.outcome == "ok"
        asked.append(constraint.questions)
        passes.append(model.passes)
    assert all(len(proposal) == 1 for _, proposal in asked[0])
    assert asked[0] == asked[1] == asked[2]
    assert passes[0] == len(asked[0])
    assert passes[2] < passes[1] < passes[0] / 2


def test_what_was_read_after_a_swapped_token_is_dropped(tokenizer: Tokenizer) -> None:
    model, constraint = ReadsAhead(tokenizer, "abcdefghi", rows=8), Asked(tokenizer)
    constraint.asked = 5  # the fourth question swaps
    snapshots, _ = run(model, canvases(1), tokenizer, constraint)
    swapped = tokenizer.decode([SECOND])
    assert snapshots[0].fills[0].startswith(f"abc{swapped}")
    assert [slot.state for slot in snapshots[0].slots[0]][:5] == [*["committed"] * 4, "draft"]


def test_one_slot_a_pass_is_committed_however_far_it_has_read(tokenizer: Tokenizer) -> None:
    model = ReadsAhead(tokenizer, "abcdef", rows=8)
    _, ending = run(model, canvases(1), tokenizer, schedule="single")
    assert (ending.verdict.fills, model.passes) == (("abcdef",), len(tokenizer.encode("abcdef")) + 1)


def test_what_a_pass_has_read_of_a_text_that_is_written_anew_is_proposed_together(tokenizer: Tokenizer) -> None:
    model, constraint = ReadsAhead(tokenizer, "abcdefghi", rows=8), Asked(tokenizer)
    _, ending = run(model, [Canvas(Gap(0), 16, 64, anew=True)], tokenizer, constraint)
    assert ending.verdict.fills == ("abcdefghi",)
    assert len(constraint.questions) == model.passes == 1
    assert len(constraint.questions[0][1]) == len(tokenizer.encode("abcdefghi")) + 1


def test_a_token_that_is_refused_at_last_ends_the_fill_without_another_pass(tokenizer: Tokenizer) -> None:
    model, constraint = ReadsAhead(tokenizer, "abcdef", rows=8), Strict(tokenizer, lambda commit: commit.slot < 3)
    _, ending = run(model, canvases(1), tokenizer, constraint)
    assert (ending.outcome, model.passes, constraint.asked) == ("no_valid_fill", 1, 4)


def test_a_fill_that_may_not_end_where_it_repeats_the_suffix_ends_with_its_last_line(tokenizer: Tokenizer) -> None:
    class NeverEmpty(Unconstrained):
        def confirms(self, gap: int, view: GapView) -> bool:
            return bool(view.done)

    rule = StopRule.between("def f():\n    ", "\n    value = 1\n", limit=LineLimit(1, keeps_newline=False))
    opened = [Canvas(Gap(5), 8, 64, stop=rule)]
    model = Scripted(tokenizer, "value = 1\n" * 8)
    _, ending = run(model, opened, tokenizer, NeverEmpty(tokenizer), schedule="single")
    assert ending.verdict.fills == ("value = 1",)
    assert model.passes <= len(tokenizer.encode("value = 1\n"))


def test_the_other_gaps_go_on_where_one_is_refused(tokenizer: Tokenizer) -> None:
    class Uneven(ReadsAhead):
        """Reads eight slots of the first gap and one of the other."""

        def _marginals(self, canvas: Canvas, wanted: Sequence[int]) -> Marginals:
            self._rows = 8 if canvas.gap.index == 0 else 1
            return super()._marginals(canvas, wanted)

    model = Uneven(tokenizer, "abcdef", "uvwxyz", rows=8)
    constraint = Strict(tokenizer, lambda commit: commit.gap == 1 or commit.slot < 3)
    opened = [Canvas(Gap(0), 8, 64), Canvas(Gap(1), 8, 64)]
    _, ending = run(model, opened, tokenizer, constraint)
    assert (ending.outcome, opened[1].tokens()) == ("no_valid_fill", tokenizer.encode("uvwxyz"))


def test_cancel_and_deadline_are_checked_between_the_tokens_of_a_pass(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint = Strict(tokenizer, lambda commit: True)
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(constraint.asked))
    model = ReadsAhead(tokenizer, "x = 1\ny = 2\n", rows=8)
    _, ending = run(model, canvases(1, 16), tokenizer, constraint, deadline=6.0)
    assert (ending.outcome, ending.verdict.fills) == ("deadline", ("x = 1\n",))
    assert (model.passes, constraint.asked) == (1, 6)


def test_commits_after_an_end_of_gap_of_the_same_step_are_dropped(tokenizer: Tokenizer) -> None:
    _, ending = run(Scripted(tokenizer, "x"), canvases(1), tokenizer, steps=1)
    assert (ending.verdict.fills, ending.counts.steps) == (("x",), 1)


def test_snapshots_show_every_slot(tokenizer: Tokenizer) -> None:
    snapshots, _ = run(Scripted(tokenizer, "x = 1\n", "y"), canvases(2), tokenizer, schedule="single")
    first, last = snapshots[0], snapshots[-1]
    assert [snapshot.step for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    # After one step the other slots are drafts, up to the end that the model proposes.
    assert first.fills == ("x = 1\n", "y")
    assert [slot.state for slot in first.slots[0]] == ["committed", *["draft"] * 4]
    assert [slot.text for slot in first.slots[0]] == ["x", " =", " ", "1", "\n"]
    assert [slot.confidence for slot in first.slots[0]] == pytest.approx([0.95] * 5)
    assert {slot.state for slots in last.slots for slot in slots} == {"committed"}
    for snapshot in snapshots:
        assert len(snapshot.fills) == len(snapshot.slots) == 2
        assert all(
            "".join(slot.text for slot in slots) == fill
            for fill, slots in zip(snapshot.fills, snapshot.slots, strict=True)
        )


def test_a_snapshot_shows_half_a_character_as_a_replacement_character(tokenizer: Tokenizer) -> None:
    model = Scripted(tokenizer, "\U0001f600")
    model._wanted[0][1] = tokenizer.eog_id
    snapshots, ending = run(model, canvases(1), tokenizer, steps=1)
    assert snapshots[0].fills == ("\ufffd",)
    assert ending.verdict.fills == ("",)


@pytest.mark.parametrize("schedule", ["entropy", "confidence", "single"])
def test_a_seed_reproduces_a_sampled_fill(tokenizer: Tokenizer, schedule: str) -> None:
    def drawn(seed: int) -> tuple[str, ...] | None:
        model = Scripted(tokenizer, "x" * 40)
        _, ending = run(
            model, canvases(1, 8, 40), tokenizer, schedule=schedule, temperature=5.0, seed=seed, corrections=0
        )
        return ending.verdict.fills

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(4)}) > 1
