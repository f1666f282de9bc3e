from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.train.pieces import PieceError, copy_pieces, cut, join


def write(folder: Path, contents: list[bytes]) -> list[Path]:
    folder.mkdir()
    paths = [folder / f"file{number}" for number in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    return paths


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=50), min_size=1, max_size=6), st.integers(1, 60))
def test_files_come_back_however_they_are_cut(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], size: int
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    manifest = cut(write(folder / "in", contents), folder / "pieces", size)
    assert max((piece.size for piece in manifest.pieces), default=0) <= size
    assert join(folder / "pieces", folder / "out") == []
    assert [(folder / "out" / f"file{n}").read_bytes() for n in range(len(contents))] == contents


def test_files_are_complete_as_soon_as_their_pieces_are_there(tmp_path: Path) -> None:
    cut(write(tmp_path / "in", [b"a" * 15, b"b" * 10, b"c" * 10]), tmp_path / "cut", 10)
    seen = []
    for name in ("piece-000", "piece-001", "piece-002", "piece-003"):
        way = tmp_path / name
        way.mkdir()
        for carried in ("pieces.json", name):
            (way / carried).write_bytes((tmp_path / "cut" / carried).read_bytes())
        copy_pieces(way, tmp_path / "there")
        seen.append(join(tmp_path / "there", tmp_path / "out"))
    assert seen == [["file0", "file1", "file2"], ["file1", "file2"], ["file2"], []]


def test_a_damaged_piece_is_named(tmp_path: Path) -> None:
    cut(write(tmp_path / "in", [b"a" * 15]), tmp_path / "cut", 10)
    (tmp_path / "cut" / "piece-001").write_bytes(b"aaaab")
    with pytest.raises(PieceError, match="piece-001: the piece is damaged"):
        join(tmp_path / "cut", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("content", ["", "{}", '{"files": [{"size": 1}], "pieces": []}'])
def test_a_bad_manifest_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "pieces.json").write_text(content)
    with pytest.raises(PieceError, match=r"pieces\.json: not a manifest of pieces"):
        join(tmp_path, tmp_path / "out")


def test_pieces_of_an_older_cut_do_not_stay(tmp_path: Path) -> None:
    (path,) = write(tmp_path / "in", [b"a" * 30])
    cut([path], tmp_path / "cut", 10)
    cut([path], tmp_path / "cut", 20)
    assert sorted(one.name for one in (tmp_path / "cut").iterdir()) == ["piece-000", "piece-001", "pieces.json"]
