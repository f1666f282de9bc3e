from pathlib import Path

import pytest

from lacuna_model.prior import store
from lacuna_model.prior.index import IndexedDocuments
from lacuna_model.prior.store import IndexedFiles
from lacuna_model.prior.suffix_array import token_type

FILES = IndexedFiles(
    IndexedDocuments.index({"a.py": [1, 2, 3], "b.py": []}, token_type(100)), {"a.py": (9, 5), "c.bin": (1, 2)}
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "some.index"
    store.save(path, FILES, "tokenizer")
    return path


def test_an_index_of_another_tokenizer_or_a_missing_one_is_none(file: Path, tmp_path: Path) -> None:
    assert store.load(file, "another") is None
    assert store.load(tmp_path / "absent.index", "tokenizer") is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "header", "empty"])
def test_a_damaged_index_is_none(file: Path, damage: str) -> None:
    data = bytearray(file.read_bytes())
    body = data.index(b"\n") + 1
    if damage == "flipped":
        data[body + 3] ^= 1
    damaged = {"cut": data[:-1], "flipped": data, "header": b"{}\n" + data[body:], "empty": b""}[damage]
    file.write_bytes(damaged)
    assert store.load(file, "tokenizer") is None
