from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
import torch

from lacuna_model.canvas import Canvas
from lacuna_model.constraint import Commit, GapView, Remask, Unconstrained
from lacuna_model.context import Layout, Stream, lay_out
from lacuna_model.denoise import denoise
from lacuna_model.engine import never
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.open_slots import NUM_CANDIDATES
from lacuna_model.params import DecodeOptions
from lacuna_model.prior.statements import Statements
from lacuna_model.prior.weights import fitted
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.transformer import NoStore
from lacuna_model.two_sided import TwoSidedModel

from . import tiny

pytestmark = pytest.mark.usefixtures("loops")

SEGMENTS = tuple(tiny.CODE[a:b] for a, b in ((0, 60), (60, 200), (205, 300), (310, None)))


def context(model: LoadedModel, *segments: str) -> tuple[ContextCache, Layout]:
    layout = lay_out(segments, model.tokenizer, reserve=lambda _: 64, hole=64)
    cache = ContextCache(model.base)
    cache.update(layout)
    return cache, layout


def decode(model: LoadedModel, reader: TwoSidedModel, canvases: list[Canvas], **options: object) -> None:
    tokenizer = model.tokenizer
    constraint = Unconstrained(tokenizer)
    decoding = DecodeOptions(**options)
    for _ in denoise(reader, canvases, constraint, tokenizer, decoding, cancelled=never, deadline=None):
        pass


@torch.inference_mode()
def greedy(
    model: LoadedModel, ids: list[int], positions: list[int], prefix: bytes, count: int, num_before: int = 0
) -> list[int]:
    """The base's own continuation, its first token beginning with ``prefix``, without end-of-gap.

    The first ``num_before`` tokens are another stream: it is hidden from what follows up to the last token given.
    """
    tokens: list[int] = []
    while len(tokens) < count:
        line = torch.tensor([ids + tokens])
        where = torch.tensor(positions + [positions[-1] + 1 + i for i in range(len(tokens))])
        mask = torch.ones((line.shape[1], line.shape[1]), dtype=torch.bool).tril()
        mask[num_before : len(ids) - 1, :num_before] = False
        logits = model.base.head(model.base.hidden(model.base.embed(line), where, NoStore(), mask)[0, -1])
        logits[model.tokenizer.eog_id] = -torch.inf
        allowed = torch.arange(len(logits)) if tokens else model.prefixes.starting_with(prefix)
        tokens.append(int(allowed[logits[allowed].argmax()]))
    return tokens


@pytest.mark.parametrize("block_size", [1, 4, 16])
@pytest.mark.parametrize("num_gaps", [1, 3])
@pytest.mark.parametrize(
    "options",
    [{"schedule": "single"}, {"schedule": "confidence", "confidence": 2.0}],
    ids=["slot-by-slot", "as-far-as-verified"],
)
def test_full_guidance_writes_what_the_base_would(
    model: LoadedModel, options: dict[str, object], num_gaps: int, block_size: int
) -> None:
    cache, layout = context(model, *SEGMENTS[:num_gaps], SEGMENTS[num_gaps])
    canvases = tiny.canvases(layout, block_size, budget=20, min_tokens=20)
    decode(model, tiny.reader(model, cache, layout, guidance=1.0), canvases, corrections=0, **options)
    for canvas in canvases:
        gap, before = canvas.gap, layout.before if canvas.gap.parent == "after" else Stream()
        stream = layout.before if gap.parent == "before" else layout.after
        ids = [*before.ids, *stream.ids[: gap.parent_len]]
        positions = [*before.positions, *stream.positions[: gap.parent_len]]
        assert canvas.tokens() == greedy(model, ids, positions, gap.prefix, 20, len(before))


@pytest.mark.parametrize("guidance", [0.0, 0.5])
def test_the_first_token_begins_with_the_healed_text(model: LoadedModel, guidance: float) -> None:
    cache, layout = context(model, *SEGMENTS)
    assert all(gap.prefix for gap in layout.gaps)
    canvases = tiny.canvases(layout)
    decode(model, tiny.reader(model, cache, layout, guidance), canvases)
    for canvas in canvases:
        assert model.tokenizer.decode_bytes(canvas.tokens()).startswith(canvas.gap.prefix)


@torch.inference_mode()
def best_lead(model: LoadedModel, layout: Layout) -> int | None:
    """The token that the healed text begins with where the base finds that likelier than one token with all of it."""

    def said(*tokens: int) -> torch.Tensor:
        ids = torch.tensor([[*layout.before.ids, *tokens]])
        mask = torch.ones((ids.shape[1], ids.shape[1]), dtype=torch.bool).tril()
        hidden = model.base.hidden(model.base.embed(ids), torch.arange(ids.shape[1]), NoStore(), mask)
        return model.base.head(hidden[0, -1]).log_softmax(-1)

    prefix, first = layout.gaps[0].prefix, said()
    odds: dict[int | None, float] = {None: float(first[model.prefixes.starting_with(prefix)].logsumexp(0))}
    for token, rest in model.prefixes.leading(prefix):
        odds[token] = float(first[token] + said(token)[model.prefixes.starting_with(rest)].logsumexp(0))
    return max(odds, key=lambda token: odds[token])


def test_healed_text_is_split_where_the_base_would_split_it(model: LoadedModel) -> None:
    tokenizer, split = model.tokenizer, []
    for cut in range(40, 300, 3):
        cache, layout = context(model, tiny.CODE[:cut], tiny.CODE[cut:])
        prefix = layout.gaps[0].prefix
        if len(prefix) < 2:
            continue
        lead = best_lead(model, layout)
        (canvas,) = tiny.canvases(layout, block_size=4, budget=8, min_tokens=2)
        decode(model, tiny.reader(model, cache, layout, guidance=0.5), [canvas])
        first = canvas.tokens()[0]
        assert tokenizer.decode_bytes(canvas.tokens()).startswith(prefix)
        assert first == lead if lead is not None else tokenizer.token_bytes(first).startswith(prefix)
        split.append(lead is not None)
    assert set(split) == {True, False}


@pytest.mark.parametrize("min_tokens", [0, 1, 5, 11, 12])
@pytest.mark.parametrize("guidance", [0.0, 0.5, 1.0])
def test_no_end_comes_before_the_least_length(
    model: LoadedModel, guidance: float, min_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def eager(hidden: torch.Tensor) -> torch.Tensor:
        logits = model.base.head(hidden)
        logits[..., model.tokenizer.eog_id] = 100.0  # a canvas side that wants to end everywhere
        return logits

    monkeypatch.setattr(model.canvas, "head", eager)
    cache, layout = context(model, *SEGMENTS)
    canvases = tiny.canvases(layout, block_size=4, budget=12, min_tokens=min_tokens)
    believing = msgspec.structs.replace(fitted(), drafted_end=(0.0, 1.0), guided_end=(0.0, 1.0, 0.0))
    decode(model, tiny.reader(model, cache, layout, guidance, weights=believing), canvases, steps=1)
    # The healed token in front of a gap is none of the fill's own.
    assert [len(canvas.tokens()) for canvas in canvases] == [min(min_tokens + 1, 12)] * 3


def test_a_fill_ends_where_the_text_behind_it_would_go_on(model: LoadedModel) -> None:
    cache, layout = context(model, *SEGMENTS[:2])
    (canvas,) = tiny.canvases(layout, block_size=4, budget=20)
    hearing = msgspec.structs.replace(fitted(), guided_end=(-20.0, 0.0, 1.0))  # the base's word alone, never enough
    decode(model, tiny.reader(model, cache, layout, guidance=1.0, weights=hearing), [canvas], schedule="single")
    assert len(canvas.tokens()) == 20
    _, fourth = canvas.tokens()[2:4]
    told = Layout(layout.before, Stream((layout.after.ids[0], fourth), layout.after.positions[:2]), layout.gaps)
    anew = ContextCache(model.base)
    anew.update(told)
    (canvas,) = tiny.canvases(told, block_size=4, budget=20)
    sharp = msgspec.structs.replace(fitted(), guided_end=(40.0, 0.0, 20.0))  # from a probability of 0.14 on
    decode(model, tiny.reader(model, anew, told, guidance=1.0, weights=sharp), [canvas], schedule="single")
    assert len(canvas.tokens()) <= 3


def test_marginals_are_sorted_and_of_every_slot(model: LoadedModel) -> None:
    cache, layout = context(model, *SEGMENTS)
    reader = tiny.reader(model, cache, layout, guidance=0.5)
    canvases = tiny.canvases(layout)
    for canvas in canvases:
        canvas.open_block()
    canvases[1].closed = True
    first, closed, third = reader.read(canvases)
    assert closed is None
    for seen in (first, third):
        assert seen is not None
        assert seen.ids.shape == seen.logp.shape == (6, NUM_CANDIDATES)
        assert (seen.logp[:, :-1] >= seen.logp[:, 1:]).all()
        assert seen.entropy.shape == (6,)
        assert 1 <= seen.exact <= 6
    assert (reader.counts.canvas, reader.counts.base) == (1, 1)


def test_without_guidance_the_base_is_not_asked(model: LoadedModel) -> None:
    cache, layout = context(model, *SEGMENTS)
    reader = tiny.reader(model, cache, layout)
    canvases = tiny.canvases(layout)
    decode(model, reader, canvases)
    assert reader.counts.base == 0
    assert reader.counts.canvas > 0


def test_gaps_see_each_other(model: LoadedModel) -> None:
    cache, layout = context(model, *SEGMENTS)
    reader = tiny.reader(model, cache, layout)
    canvases = tiny.canvases(layout)
    for canvas in canvases:
        canvas.open_block()
    with torch.inference_mode():
        undecided = reader.draft(canvases)[2]
        canvases[0].slots[:3] = [40, 41, 42]
        decided = reader.draft(canvases)[2]
    assert not torch.allclose(undecided, decided)


def test_finished_blocks_are_part_of_the_context(model: LoadedModel) -> None:
    """A block behind a finished one is read as if its tokens stood in the text (but for the healed beginning)."""
    cache, layout = context(model, "\U0001f600", SEGMENTS[3])  # nothing to heal behind an emoji
    (gap,) = layout.gaps
    assert gap.prefix == b""
    written = model.tokenizer.encode("def total")
    canvas = Canvas(gap, len(written), len(written) + 4)
    canvas.open_block()
    canvas.slots = list(written)
    reader = tiny.reader(model, cache, layout)
    reader.finish_block([canvas])
    canvas.block_size = 4
    canvas.open_block()
    with torch.inference_mode():
        got = reader.draft([canvas])[0]
        guided = reader.verify([canvas], [[5, 6, 7, 8]])[0]
    before = type(layout.before)((*layout.before.ids, *written), tuple(range(len(layout.before) + len(written))))
    moved = type(gap)("before", len(before), len(before))
    typed = Layout(before, layout.after, (moved,))
    anew = ContextCache(model.base)
    anew.update(typed)
    other = Canvas(moved, 4, 4)
    other.open_block()
    fresh = tiny.reader(model, anew, typed)
    with torch.inference_mode():
        torch.testing.assert_close(got, fresh.draft([other])[0], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(guided, fresh.verify([other], [[5, 6, 7, 8]])[0], atol=1e-4, rtol=1e-4)


def test_a_reading_serves_until_it_is_too_old_or_the_line_may_end(model: LoadedModel) -> None:
    def passes(max_age: int) -> tuple[int, int, list[int]]:
        cache, layout = context(model, tiny.CODE[:133], tiny.CODE[140:])
        reader = tiny.reader(model, cache, layout, guidance=1.0, max_age=max_age)
        canvases = [Canvas(layout.gaps[0], 8, 24, min_tokens=24)]
        decode(model, reader, canvases, schedule="single")
        return reader.counts.canvas, reader.counts.base, canvases[0].tokens()

    always, aged = passes(0), passes(3)
    assert always[2] == aged[2]  # with full guidance the base alone decides
    assert always[0] == always[1] == 24
    assert 24 / 4 <= aged[0] < 24
    assert 24 <= aged[1] <= 24 + aged[0]


def test_an_end_that_cuts_a_block_cuts_its_reading(model: LoadedModel) -> None:
    cache, layout = context(model, tiny.CODE[:133], tiny.CODE[140:])
    reader = tiny.reader(model, cache, layout, guidance=0.5)
    canvas = Canvas(layout.gaps[0], 8, 24, min_tokens=24)
    canvas.open_block()
    reader.read([canvas])
    canvas.commit(0, 40, model.tokenizer.eog_id)
    canvas.commit(5, model.tokenizer.eog_id, model.tokenizer.eog_id)
    (seen,) = reader.read([canvas])
    assert seen is not None
    assert len(seen.ids) == len(canvas.slots) == 6


def test_a_full_block_that_waits_costs_no_passes(model: LoadedModel) -> None:
    cache, layout = context(model, *SEGMENTS[:3])
    reader = tiny.reader(model, cache, layout, guidance=1.0)
    waiting, open_one = tiny.canvases(layout, block_size=4)
    for canvas in (waiting, open_one):
        canvas.open_block()
    reader.read([waiting, open_one])
    waiting.slots = [40, 41, 42, 43]
    open_one.slots[0] = 40
    seen = reader.read([waiting, open_one])
    assert seen[0] is not None
    assert seen[0].exact == 0
    assert reader.counts.canvas == 1


@pytest.mark.parametrize("guidance", [0.0, 0.5])
def test_a_canvas_begins_as_it_was_told_and_goes_on_by_itself(model: LoadedModel, guidance: float) -> None:
    cache, layout = context(model, *SEGMENTS[:2])
    (alone,) = tiny.canvases(layout, block_size=3, budget=8, min_tokens=8)
    decode(model, tiny.reader(model, cache, layout, guidance=guidance), [alone])
    begin = [*alone.tokens()[:4], alone.tokens()[4] + 1]
    (told,) = tiny.canvases(layout, block_size=3, budget=8, min_tokens=8)
    told.begin = begin
    decode(model, tiny.reader(model, cache, layout, guidance=guidance), [told])
    assert told.tokens()[:5] == begin
    assert len(told.tokens()) == 8


class Wavering(Unconstrained):
    """Takes tokens tentatively and masks them again, once, after so many steps; then lets all through."""

    def __init__(self, tokens: Tokenizer, steps: int) -> None:
        super().__init__(tokens)
        self._left = steps

    def admit(self, gaps: Sequence[GapView], proposal: Sequence[Commit]) -> Sequence[Commit | Remask]:
        self._left -= 1
        if self._left == 0:
            return [Remask(gap, 0) for gap in range(len(gaps))]
        return [replace(commit, tentative=self._left > 0) for commit in proposal]


@pytest.mark.parametrize("steps", [2, 4])
def test_what_was_masked_again_leaves_no_trace(model: LoadedModel, steps: int) -> None:
    fills = []
    for constraint in (Unconstrained(model.tokenizer), Wavering(model.tokenizer, steps)):
        cache, layout = context(model, *SEGMENTS[:3])
        canvases = [Canvas(gap, 12, 12, min_tokens=12) for gap in layout.gaps]
        reader = TwoSidedModel(model, cache, layout, guidance=0.5)
        options = DecodeOptions(schedule="single")
        for _ in denoise(reader, canvases, constraint, model.tokenizer, options, cancelled=never, deadline=None):
            pass
        fills.append([canvas.tokens() for canvas in canvases])
    assert fills[0] == fills[1]


class Counting(Statements):
    """Statements that want one token behind another, by how many are written."""

    def weigh(self, row: torch.Tensor, written: Sequence[int]) -> None:
        row[30 + len(written)] += 1e3


@pytest.mark.parametrize("block_size", [3, 16])
def test_what_is_known_of_statements_weighs_in_every_slot(model: LoadedModel, block_size: int) -> None:
    cache, layout = context(model, "", "\n    return value\n")
    (canvas,) = tiny.canvases(layout, block_size, budget=8, min_tokens=8)
    statements = [Counting(model.tokenizer, "", "", assigned=True)]
    decode(model, TwoSidedModel(model, cache, layout, guidance=0.5, statements=statements), [canvas])
    assert canvas.tokens() == list(range(30, 38))
