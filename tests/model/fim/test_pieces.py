"""A context is read in short pieces on a CPU, and in pieces as wide as they may last on another device."""

from collections.abc import Iterator

import pytest
import torch
from tests.model import tiny
from tests.model.elsewhere import ELSEWHERE, Elsewhere
from tests.model.test_elsewhere import model

from lacuna_model.backends.readers import new_cache
from lacuna_model.core.context import finished
from lacuna_model.fim import pieces, tracks
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.pieces import LEAST_ROWS, PIECE_MS, WIDE_ROWS, ContextPieces
from lacuna_model.network.devices import HOST

from . import tiny_fim

TEXT = tiny.CODE * 4


def context(loaded: LoadedFim) -> FimContext:
    made = new_cache(loaded)
    assert isinstance(made, FimContext)
    return made


def passes(loaded: LoadedFim, monkeypatch: pytest.MonkeyPatch, *, ahead: bool) -> list[int]:
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
        (rows,) = passes(model(ELSEWHERE), monkeypatch, ahead=ahead)
    assert rows > 500


def test_pieces_that_last_too_long_become_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of them, other requests take their turns."""
    now: Iterator[float] = iter([number * 2 * PIECE_MS / 1e3 for number in range(99)])
    monkeypatch.setattr(pieces, "perf_counter", lambda: next(now))
    with Elsewhere():
        loaded = model(ELSEWHERE)
        loaded.pieces.rows = 4 * LEAST_ROWS
        reading = context(loaded).updating(tiny_fim.laid_out(loaded, TEXT[:900], TEXT[900:]), ahead=True)
        assert sum(1 for _ in reading) >= 3
    assert loaded.pieces.rows == LEAST_ROWS
    assert loaded.costs.reading_ms(WIDE_ROWS) > PIECE_MS  # what is due is answered by what readings have taken


def test_pieces_become_wide_again_where_they_take_little_time() -> None:
    found = ContextPieces(torch.device("meta"))
    found.took(WIDE_ROWS, 10 * PIECE_MS)  # it compiled a kernel
    assert found.rows == WIDE_ROWS // 2
    found.took(found.rows // 2, 1.0)  # a short one says nothing
    found.took(LEAST_ROWS, 10 * PIECE_MS)  # it could not be shorter
    assert found.rows == WIDE_ROWS // 2
    found.took(found.rows, 1.0)
    assert found.rows == WIDE_ROWS


def test_a_cpu_reads_pieces_of_one_size() -> None:
    found = ContextPieces(HOST)
    assert found.rows == pieces.CPU_ROWS
