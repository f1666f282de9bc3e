"""Which model answers a request that is due, and with how much context."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lacuna_model.core.context import WindowOptions
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, ReadContext, Region, Snippet
from lacuna_model.engine import Engine
from lacuna_model.fim import measuring
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.measuring import LINE_ROWS
from lacuna_model.hub import models
from lacuna_model.tiers import FIRST_TELLING_FILLS, NEAREST, DocumentSessions

from . import tiny
from .fim import tiny_fim

DUE_MS = 400
TEXT = tiny.CODE * 12
AT = len(TEXT) * 2 // 3


class Fixed(PassCosts):
    """Costs that do not learn."""

    def __init__(self, row_ms: float, pass_ms: float) -> None:
        super().__init__()
        self._row, self._pass = row_ms, pass_ms

    def ms(self, rows: int, masks: int = 0) -> float:
        return self._pass

    def reading_ms(self, rows: int) -> float:
        return rows * self._row


def slow(model: LoadedFim, name: str, row_ms: float, pass_ms: float = 1.0) -> LoadedFim:
    """A model by another name whose passes seem to take so long."""
    return replace(model, name=name, costs=Fixed(row_ms, pass_ms))


@pytest.fixture
def alone() -> Engine:
    return Engine(slow(tiny_fim.loaded(), "alone", row_ms=10))


@pytest.fixture
def both() -> Engine:
    small = slow(tiny_fim.loaded(1), "small", row_ms=0.01)
    return Engine(replace(slow(tiny_fim.loaded(0), "large", row_ms=10), smaller=small))


def request(at: int = AT, due_ms: int = DUE_MS, *, ahead: bool = False) -> InfillRequest:
    options = DecodeOptions(syntax=False, prior=False)
    task = ReadContext() if ahead else FillGaps(due_ms=due_ms)
    return InfillRequest(TEXT, (Region(at, at, max_tokens=8),), task, path="a.py", options=options)


def test_the_nearest_text_answers_while_the_context_is_not_read(alone: Engine) -> None:
    early = alone.fill(request()).stats
    assert early.context_tokens <= NEAREST.before + NEAREST.after + 8
    assert early.unread > NEAREST.before + NEAREST.after
    alone.fill(request(ahead=True))
    late = alone.fill(request()).stats
    assert late.unread == 0
    assert late.context_tokens > early.context_tokens


def test_the_nearest_text_is_read_once_for_the_keys_of_a_line(alone: Engine) -> None:
    snippet = Snippet("b.py", tiny.CODE)
    for typed in ("", "a", "ab"):
        text = TEXT[:AT] + typed
        found = alone.fill(msgspec.structs.replace(request(len(text)), text=text, snippets=(snippet,))).stats
        assert found.context_tokens <= NEAREST.before + NEAREST.after + 8
        assert not typed or found.cached_tokens > found.context_tokens / 2


def test_a_fill_that_is_not_due_reads_the_whole_context(alone: Engine) -> None:
    stats = alone.fill(request(due_ms=0)).stats
    assert stats.unread == 0
    assert stats.context_tokens > NEAREST.before + NEAREST.after + 8


def test_the_smaller_model_answers_while_the_larger_ones_context_is_not_read(both: Engine) -> None:
    stats = both.fill(request()).stats
    assert (stats.model, stats.unread > 0) == ("small", True)
    assert stats.context_tokens > NEAREST.before + NEAREST.after + 8
    both.fill(request(ahead=True))
    assert both.fill(request()).stats.model == "large"


def test_where_only_the_passes_are_slow_a_context_that_is_read_is_used() -> None:
    engine = Engine(slow(tiny_fim.loaded(), "busy", row_ms=10, pass_ms=2 * DUE_MS))
    assert engine.fill(request()).stats.context_tokens <= NEAREST.before + NEAREST.after + 8
    engine.fill(request(ahead=True))
    stats = engine.fill(request()).stats
    assert stats.unread == 0
    assert stats.context_tokens > NEAREST.before + NEAREST.after + 8


def test_a_smaller_model_that_was_made_to_draft_only_does_not_answer() -> None:
    small = slow(tiny_fim.loaded(1), "small", row_ms=0.01)
    small.layers.outputs -= 1
    engine = Engine(replace(slow(tiny_fim.loaded(0), "large", row_ms=10), smaller=small))
    stats = engine.fill(request()).stats
    assert (stats.model, stats.unread > 0) == ("large", True)


def test_fills_tell_how_fast_an_unmeasured_machine_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(measuring, "is_busy", lambda: False)
    engine = Engine(replace(slow(tiny_fim.loaded(), "alone", row_ms=10, pass_ms=5.0), path=tmp_path / "model.gguf"))
    for _ in range(FIRST_TELLING_FILLS - 1):
        engine.fill(request(due_ms=0))
    assert models.line_ms() is None
    engine.fill(request(due_ms=0))
    large = models.LARGE_WEIGHTS / engine.model.config.num_weights
    assert models.line_ms() == pytest.approx(5.0 * len(LINE_ROWS) * large, rel=0.01)


def sessions(model: LoadedFim, documents: int) -> DocumentSessions:
    """Sessions whose budget is the memory of this many documents."""
    one = DocumentSessions(model, WindowOptions(), 1)
    with one.running("any"):
        return DocumentSessions(model, WindowOptions(), documents * one.num_bytes)


def use(kept: DocumentSessions, *keys: str) -> None:
    for key in keys:
        with kept.running(key):
            pass


def test_documents_that_are_being_filled_are_kept_whatever_the_budget(model: LoadedFim) -> None:
    kept = sessions(model, 1)
    with kept.running("a") as first:
        with kept.running("b"):
            use(kept, "c")
            assert "a" in kept
            assert "b" in kept
        assert "c" in kept  # the last one used
        assert "b" not in kept
        first.cache.reader.arena.reserve(5000)  # it grows during its fill
    assert "a" not in kept
    use(kept, "d")
    assert [key for key in "abcd" if key in kept] == ["d"]


def test_one_fill_of_a_document_at_a_time(either_model: LoadedFim) -> None:
    kept = sessions(either_model, 2)
    with kept.running("a"), pytest.raises(RequestError, match="under way"), kept.running("a"):
        pass
    use(kept, "a")
