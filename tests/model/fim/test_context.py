"""The gap buffer: what a keystroke keeps of the cache, and what is read again."""

import pytest
import torch
from tests.model import tiny

from lacuna_model.core.context import Layout, finished
from lacuna_model.fim import tracks
from lacuna_model.fim.context import MAX_STALE, FimContext, Prompts
from lacuna_model.network import transformer

from . import tiny_fim

MODEL = tiny_fim.loaded()
TEXT = tiny.CODE * 3
BEFORE, AFTER = TEXT[:900], TEXT[900:]


def new_context(near: int) -> FimContext:
    return FimContext(MODEL.tracks(), MODEL.tokenizer, MODEL.fim, near=near)


@torch.inference_mode()
def logits_at(context: FimContext, gap: int) -> torch.Tensor:
    """The logits after the FIM middle token of a gap."""
    chain, track = context.chain(gap), context.reader.new()
    track.become([MODEL.fim.middle], sum(len(one.ids) for one in chain))
    said = context.reader.logits(context.reader.read([[*chain, track]])[track])[-1]
    context.reader.drop(track)
    return said


def assert_plain(context: FimContext, layout: Layout) -> None:
    """The logits after the prompt of a context are those of a plain pass."""
    expected = tiny_fim.plain_logits(MODEL, prompt(layout, 0))[-1]
    torch.testing.assert_close(logits_at(context, 0), expected, atol=1e-4, rtol=1e-4)


def prompt(layout: Layout, gap: int, fills: tuple[list[int], ...] = ()) -> list[int]:
    """The complete prompt of a gap, with ``fills`` in the gaps before it."""
    parts = Prompts.of(layout, MODEL.tokenizer, MODEL.fim)
    between = [token for fill, text in zip(fills, parts.between, strict=False) for token in (*fill, *text)]
    return [*parts.head, *between, *parts.suffixes[gap], MODEL.fim.middle]


def interrupted(context: FimContext, layout: Layout, pauses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read ahead up to a number of pauses, of which there is one after each layer."""
    monkeypatch.setattr(tracks, "PAUSE_S", 0.0)
    monkeypatch.setattr(context._pieces, "rows", 10_000)  # all in one piece
    ahead = context.updating(layout, ahead=True)
    for _ in zip(range(pauses), ahead, strict=False):
        pass
    ahead.close()


def test_with_everything_near_the_logits_after_typing_equal_those_of_a_plain_pass() -> None:
    context = new_context(near=10_000)
    for typed in ("", "x", "x = ", "x = value", "x ="):
        layout = tiny_fim.laid_out(MODEL, BEFORE + typed, AFTER)
        finished(context.updating(layout))
        assert_plain(context, layout)


def test_a_keystroke_reads_what_was_typed_and_the_near_suffix() -> None:
    context = new_context(near=8)
    finished(context.updating(tiny_fim.laid_out(MODEL, BEFORE, AFTER)))
    logits_at(context, 0)
    layout = tiny_fim.laid_out(MODEL, BEFORE + " value =", AFTER)
    counts = finished(context.updating(layout))
    assert counts.context_tokens > 250
    assert 8 < counts.context_tokens - counts.cached_tokens < 30
    assert finished(context.updating(layout)) == counts  # no pass has read anything in between
    logits_at(context, 0)
    counts = finished(context.updating(layout))
    assert counts.cached_tokens == counts.context_tokens


def test_a_suffix_is_read_again_after_too_many_typed_tokens() -> None:
    context = new_context(near=8)
    finished(context.updating(tiny_fim.laid_out(MODEL, BEFORE, AFTER)))
    logits_at(context, 0)
    layout = tiny_fim.laid_out(MODEL, BEFORE + " value =" * MAX_STALE, AFTER)
    finished(context.updating(layout))
    assert_plain(context, layout)


def test_reading_ahead_leaves_nothing_to_read_and_nothing_stale() -> None:
    context = new_context(near=8)
    finished(context.updating(tiny_fim.laid_out(MODEL, BEFORE, AFTER)))
    logits_at(context, 0)
    layout = tiny_fim.laid_out(MODEL, BEFORE + " value =" * 20, AFTER)
    finished(context.updating(layout, ahead=True))
    counts = finished(context.updating(layout))
    assert counts.cached_tokens == counts.context_tokens
    assert_plain(context, layout)


@pytest.mark.parametrize("pauses", range(1, 2 * MODEL.config.num_layers, 2))
def test_text_typed_while_a_reading_is_interrupted_moves_it(pauses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = TEXT[:300], TEXT[300:500]
    layout = tiny_fim.laid_out(MODEL, before, after)
    contexts = [new_context(near=8), new_context(near=8)]
    interrupted(contexts[0], layout, pauses, monkeypatch)
    finished(contexts[1].updating(layout, ahead=True))
    typed = tiny_fim.laid_out(MODEL, before + " value = 1\n", after)
    for context in contexts:
        finished(context.updating(typed))
    torch.testing.assert_close(logits_at(contexts[0], 0), logits_at(contexts[1], 0), atol=1e-4, rtol=1e-4)


def test_a_reading_that_fails_after_a_pause_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    context, layout = new_context(near=8), tiny_fim.laid_out(MODEL, BEFORE, AFTER)
    interrupted(context, layout, 1, monkeypatch)
    with monkeypatch.context() as failing:
        failing.setattr(transformer, "project", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            finished(context.updating(layout))
    finished(context.updating(layout))
    assert_plain(context, layout)
