import os
from pathlib import Path

import pytest

from lacuna_model.files.scanning import WorkspaceSettings
from lacuna_model.prior import indexing
from lacuna_model.prior.index import IndexedDocuments, token_type
from lacuna_model.prior.indexing import IndexedFiles, refresh
from lacuna_model.tokenizer import Tokenizer

FILES = IndexedFiles(
    IndexedDocuments.index({"a.py": [1, 2, 3], "b.py": []}, token_type(100)), {"a.py": (9, 5), "c.bin": (1, 2)}
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "some.index"
    indexing.save(path, FILES, "tokenizer")
    return path


def test_an_index_of_another_tokenizer_or_a_missing_one_is_none(file: Path, tmp_path: Path) -> None:
    assert indexing.load(file, "another") is None
    assert indexing.load(tmp_path / "absent.index", "tokenizer") is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "header", "empty"])
def test_a_damaged_index_is_none(file: Path, damage: str) -> None:
    data = bytearray(file.read_bytes())
    body = data.index(b"\n") + 1
    if damage == "flipped":
        data[body + 3] ^= 1
    damaged = {"cut": data[:-1], "flipped": data, "header": b"{}\n" + data[body:], "empty": b""}[damage]
    file.write_bytes(damaged)
    assert indexing.load(file, "tokenizer") is None


SETTINGS = WorkspaceSettings()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(5):
        (tmp_path / f"f{number}.py").write_text(f"def name{number}():\n    return {number}\n")
    (tmp_path / ".env").write_text("TOKEN=1234\n")
    return tmp_path


def texts(files: IndexedFiles, tokenizer: Tokenizer) -> dict[str, str]:
    array = files.documents.array
    spans = zip(files.documents.names, array.borders[:-1] + 1, array.borders[1:], strict=True)
    return {name: tokenizer.decode(array.tokens[first:last].tolist()) for name, first, last in spans}


def test_only_what_has_changed_is_read_again(root: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    files = refresh(root, SETTINGS, tokenizer)
    encoded: list[str] = []
    encode = tokenizer.encode_batch
    monkeypatch.setattr(tokenizer, "encode_batch", lambda texts: encoded.extend(texts) or encode(texts))
    assert refresh(root, SETTINGS, tokenizer, files) is files
    (root / "f0.py").write_text("changed = True\n")
    (root / "f1.py").unlink()
    (root / "sub").mkdir()
    (root / "sub" / "new.py").write_text("new = 1\n")
    os.utime(root / "f2.py", ns=(1, 1))  # touched, with the same text
    again = refresh(root, SETTINGS, tokenizer, files)
    assert sorted(encoded) == sorted(["changed = True\n", "new = 1\n", (root / "f2.py").read_text()])
    assert texts(again, tokenizer) == texts(refresh(root, SETTINGS, tokenizer), tokenizer)
    assert "f1.py" not in again.documents.names


def test_a_refresh_that_is_stopped_early_keeps_the_known_texts(root: Path, tokenizer: Tokenizer) -> None:
    known = refresh(root, SETTINGS, tokenizer)
    for number in range(5):
        (root / f"f{number}.py").write_text("x = 1\n")
    asked = iter((False, False, True))
    partly = refresh(root, SETTINGS, tokenizer, known, stopped=lambda: next(asked))
    assert [text == "x = 1\n" for _, text in sorted(texts(partly, tokenizer).items())] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert texts(refresh(root, SETTINGS, tokenizer, partly), tokenizer) == dict.fromkeys(
        partly.documents.names, "x = 1\n"
    )
