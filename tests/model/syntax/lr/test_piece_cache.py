"""The pieces of a grammar are kept between processes, and computed again if the kept ones are damaged."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.model.syntax.drive import require

from lacuna_model.hub import models
from lacuna_model.syntax.lr import piece_cache
from lacuna_model.syntax.lr.insertions import Ending
from lacuna_model.syntax.lr.parse_table import parse_table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "grammars"


def endings() -> list[list[Ending]]:
    """The endings of the first 60 states, found as in a new process."""
    language = require("json")
    table = parse_table(language)
    assert table is not None
    pieces = piece_cache.pieces_of.__wrapped__(language, table)[1]
    found = [pieces.endings(state) for state in range(60)]
    assert any(found)
    return found


def test_kept_pieces_are_not_computed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = endings()
    monkeypatch.delattr(piece_cache, "Shortest")
    assert endings() == found
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("damaged", [b"", b"x" * 100, None])
def test_damaged_pieces_are_computed_again(folder: Path, damaged: bytes | None) -> None:
    found = endings()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damaged is None else damaged)
    assert endings() == found
    assert file.read_bytes() == whole


def test_of_older_pieces_only_the_latest_are_kept(folder: Path) -> None:
    endings()
    (file,) = folder.iterdir()
    for age, name in enumerate(("json-before", "json-long-before"), start=1):
        (folder / name).touch()
        os.utime(folder / name, ns=(-age, -age))
    file.unlink()
    endings()
    assert set(folder.iterdir()) == {file, folder / "json-before"}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path / "file"))
    endings()


def test_on_a_full_disk_the_kept_pieces_stay(
    folder: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    endings()
    (file,) = folder.iterdir()
    kept = file.rename(folder / "json-before")
    with full_disk():
        endings()
    assert list(folder.iterdir()) == [kept]
