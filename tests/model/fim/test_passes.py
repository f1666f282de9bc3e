"""Requests that run at the same time share passes, and each gets what it gets alone; a context is read in pieces.

On a CPU these are short, on another device as wide as they may last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_fields
from tests.model import tiny
from tests.model.elsewhere import ELSEWHERE, Elsewhere
from tests.model.test_elsewhere import model

from lacuna_kernels import native
from lacuna_model.core.context import finished
from lacuna_model.core.params import DecodeOptions, FillGaps, InfillRequest, InfillResult, Region
from lacuna_model.engine import Engine
from lacuna_model.fim import passes, tracks
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.passes import LEAST_ROWS, PIECE_MS, WIDE_ROWS
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.network.gpu_layers import PassRead
from lacuna_model.network.transformer import Transformer
from lacuna_model.readers import new_cache

from . import tiny_fim

SEEDS = 3
DOCUMENTS = 3


@pytest.fixture(scope="module")
def natives(tmp_path_factory: pytest.TempPathFactory) -> list[LoadedFim]:
    """Tiny models that run in the kernels in C, one for each seed."""
    if not native.supported():
        pytest.skip("this CPU has none of the instructions")
    kernels = native.build(tmp_path_factory.mktemp("kernels"))
    return [tiny_fim.loaded_in_c(kernels, seed) for seed in range(SEEDS)]


def request(number: int, *, gaps: int = 1) -> InfillRequest:
    """A request in a document of its own; the documents differ in their length.

    Searches of the constraint end by time, so what they find may differ from run to run: there is none here.
    """
    text = tiny.CODE[31 * number :]
    cuts = [(40 + 60 * gap, 55 + 60 * gap) for gap in range(gaps)]
    regions = tuple(Region(first, last, max_tokens=8 + 3 * number) for first, last in cuts)
    return InfillRequest(text, regions, path=f"{number}.py", options=DecodeOptions(syntax=False))


def alone(model: LoadedFim, asked: InfillRequest) -> InfillResult:
    return Engine(replace(model)).fill(asked)


def beside(
    engine: Engine, asked: list[InfillRequest], turns: Iterator[int], ends: dict[int, int]
) -> list[InfillResult]:
    """The results of requests that take the ``turns`` of one step; request n is closed after ``ends[n]`` of them."""
    streams = {number: engine.stream(one) for number, one in enumerate(asked)}
    taken = dict.fromkeys(streams, 0)
    found: dict[int, InfillResult] = {}
    while streams:
        number = list(streams)[next(turns) % len(streams)]
        if taken[number] == ends.get(number):
            streams.pop(number).close()
            continue
        taken[number] += 1
        try:
            next(streams[number])
        except StopIteration as end:
            found[number] = end.value
            del streams[number]
    return [found[number] for number in sorted(found)]


def turning(order: list[int]) -> Iterator[int]:
    """The given order, then in turn."""
    yield from order
    while True:
        yield from range(DOCUMENTS)


def said(result: InfillResult) -> tuple[object, ...]:
    return result.status, result.fills, result.confidence, result.message


def test_what_was_asked_before_changes_no_fill(natives: list[LoadedFim]) -> None:
    """Candidates, and text that is typed and taken back, move what was read of the text behind."""
    for number, native_model in enumerate(natives):
        asked = request(0, gaps=2)
        engine = Engine(replace(native_model))
        engine.fill(asked)
        engine.fill(replace_fields(asked, task=FillGaps(candidates=3)))
        for typed in ("x", "x = ", "x = 12 + 3", "x"):
            cut, (first, second) = 40, asked.regions
            moved = (
                replace_fields(first, start=first.start + len(typed), end=first.end + len(typed)),
                replace_fields(second, start=second.start + len(typed), end=second.end + len(typed)),
            )
            engine.fill(replace_fields(asked, text=asked.text[:cut] + typed + asked.text[cut:], regions=moved))
        assert said(engine.fill(asked)) == said(alone(native_model, asked)), number


ORDERS = st.lists(st.integers(0, DOCUMENTS - 1), max_size=30)


@settings(max_examples=10, deadline=None)
@given(order=ORDERS, ends=st.dictionaries(st.integers(0, 1), st.integers(0, 8), min_size=1))
def test_a_request_that_ends_early_changes_no_other_and_leaves_its_document_intact(
    natives: list[LoadedFim], order: list[int], ends: dict[int, int]
) -> None:
    engine = Engine(natives[0])
    asked = [request(number) for number in range(DOCUMENTS)]
    found = beside(engine, asked, turning(order), ends)
    expected = [said(alone(natives[0], one)) for one in asked]
    assert said(found[-1]) == expected[-1]
    assert [said(engine.fill(one)) for one in asked] == expected


def test_a_pass_that_fails_for_one_is_made_for_others(
    natives: list[LoadedFim], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arena of one document has no memory left; the other's fill is that of one alone."""
    model = natives[0]
    engine = Engine(replace(model))
    poor, rich = engine.stream(request(1)), engine.stream(request(2))
    next(poor)
    next(rich)
    context = engine.sessions._sessions["1.py"].cache
    assert isinstance(context, FimContext)
    real = TrackReader.next_rows

    def failing(self: TrackReader, *arguments: object) -> object:
        if self is context.reader:
            raise MemoryError
        return real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TrackReader, "next_rows", failing)
    assert said(finished(rich)) == said(alone(model, request(2)))
    with pytest.raises(MemoryError):
        finished(poor)
    monkeypatch.undo()
    assert said(engine.fill(request(1))) == said(alone(model, request(1)))


def test_no_pass_has_more_rows_than_it_is_exact_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that do not fit wait for the next pass; one that does not fit alone is read in several."""
    model, most, rows = tiny_fim.loaded(), 20, list[int]()
    asked = [request(number, gaps=1 + number) for number in range(DOCUMENTS)]
    expected = [said(alone(model, one)) for one in asked]
    real = Transformer.read

    def read(self: Transformer, ids: Sequence[int], *rest: Any) -> PassRead:
        rows.append(len(ids))
        return real(self, ids, *rest)

    monkeypatch.setattr(Transformer, "read", read)
    found = beside(Engine(replace(model)), asked, turning([]), {})
    assert [(one[0], one[1]) for one in map(said, found)] == [(one[0], one[1]) for one in expected]
    assert max(rows) > most
    passes = [one.stats.nfe for one in found]
    assert 2 * len(rows) < max(passes) + sum(passes)  # they are shared
    rows.clear()
    monkeypatch.setattr(model.transformer, "exact_rows", most)
    found = beside(Engine(replace(model)), asked, turning([]), {})
    assert [(one[0], one[1]) for one in map(said, found)] == [(one[0], one[1]) for one in expected]
    assert 1 < max(rows) <= most


TEXT = tiny.CODE * 4


def context(loaded: LoadedFim) -> FimContext:
    made = new_cache(loaded)
    assert isinstance(made, FimContext)
    return made


def context_passes(loaded: LoadedFim, monkeypatch: pytest.MonkeyPatch, *, ahead: bool) -> list[int]:
    """The rows of each pass that encodes a context of TEXT."""
    rows: list[int] = []
    real = tracks.read_together

    def counted(*arguments: object) -> object:
        found = real(*arguments)  # type: ignore[arg-type]
        rows.append(sum(map(len, found[0].values())))
        return found

    monkeypatch.setattr(tracks, "read_together", counted)
    finished(context(loaded).updating(tiny_fim.laid_out(loaded, TEXT[:900], TEXT[900:]), ahead=ahead))
    return rows


@pytest.mark.parametrize("ahead", [False, True])
def test_another_device_reads_a_context_in_one_pass(monkeypatch: pytest.MonkeyPatch, ahead: bool) -> None:
    with Elsewhere():
        (rows,) = context_passes(model(ELSEWHERE), monkeypatch, ahead=ahead)
    assert rows > 500


def test_pieces_that_last_too_long_become_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of them, other requests take their turns."""
    now: Iterator[float] = iter([number * 2 * PIECE_MS / 1e3 for number in range(99)])
    monkeypatch.setattr(passes, "perf_counter", lambda: next(now))
    with Elsewhere():
        loaded = model(ELSEWHERE)
        loaded.pieces.rows = 4 * LEAST_ROWS
        reading = context(loaded).updating(tiny_fim.laid_out(loaded, TEXT[:900], TEXT[900:]), ahead=True)
        assert sum(1 for _ in reading) >= 3
    assert loaded.pieces.rows == LEAST_ROWS
    assert loaded.costs.reading_ms(WIDE_ROWS) > PIECE_MS  # what is due is answered by what readings have taken
