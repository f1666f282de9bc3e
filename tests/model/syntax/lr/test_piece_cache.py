"""What is found of a grammar is kept between processes, and found anew where what is kept is of no use."""

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
    """Those of all states, by a process that knows nothing yet."""
    language = require("json")
    table = parse_table(language)
    assert table is not None
    pieces = piece_cache.pieces_of.__wrapped__(language, table)[1]
    found = [pieces.endings(state) for state in range(60)]
    assert any(found)
    return found


def test_what_is_kept_is_not_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = endings()
    monkeypatch.delattr(piece_cache, "Shortest")
    assert endings() == found
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("damaged", [b"", b"x" * 100, None])
def test_what_is_damaged_is_found_anew(folder: Path, damaged: bytes | None) -> None:
    found = endings()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damaged is None else damaged)
    assert endings() == found
    assert file.read_bytes() == whole


def test_the_pieces_of_the_grammar_before_are_kept_and_no_others(folder: Path) -> None:
    endings()
    (file,) = folder.iterdir()
    for age, name in enumerate(("json-before", "json-long-before"), start=1):
        (folder / name).touch()
        os.utime(folder / name, ns=(-age, -age))
    file.unlink()
    endings()
    assert set(folder.iterdir()) == {file, folder / "json-before"}


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path / "file"))
    endings()


def test_on_a_full_disk_what_is_kept_stays(folder: Path, full_disk: Callable[[], AbstractContextManager[None]]) -> None:
    endings()
    (file,) = folder.iterdir()
    kept = file.rename(folder / "json-before")
    with full_disk():
        endings()
    assert list(folder.iterdir()) == [kept]
