import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest
from lacuna_server import files
from lacuna_server.files import MARKER, FileText

# Texts that break tools: LF, CRLF, a lone CR, tabs, combining characters, emoji with joiners, a BOM.
TRICKY = [
    *("\r\n", "\n", "\r", "\t", "e\u0301", "👩‍👩‍👧", "🇩🇪", "\ufeff", "\u2028", "x", " ", "ä"),
    *("<<", ">>", "<<fill", "\x1b[0m"),
]
texts = st.lists(
    st.sampled_from(TRICKY) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
).map("".join)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "code.py"


def document(text: str) -> FileText:
    return FileText(Path("code.py"), text, os.stat(__file__))


def put(file: Path, text: str) -> FileText:
    file.write_bytes(text.encode())
    return files.read(file)


@given(outside=st.lists(texts, min_size=2, max_size=5), fills=st.lists(texts, min_size=4, max_size=4))
def test_every_byte_outside_the_gaps_survives(
    tmp_path_factory: pytest.TempPathFactory, outside: list[str], fills: list[str]
) -> None:
    outside = [text.replace(MARKER, "") for text in outside]
    file = tmp_path_factory.mktemp("files") / "code.py"
    read = put(file, MARKER.join(outside))
    regions = files.marked(read, 9)
    assert len(regions) == len(outside) - 1
    fills = [files.adapt_newlines(read, fill) for fill in fills[: len(regions)]]
    files.write(read, InfillRequest(read.text, tuple(regions)).filled(fills))
    expected = outside[0] + "".join(fill + text for fill, text in zip(fills, outside[1:], strict=True))
    assert file.read_bytes() == expected.encode()


@pytest.mark.parametrize(
    ("text", "position", "offset"),
    [
        ("", "1:0", 0),
        ("ab\ncd", "2:1", 4),
        ("ab\r\ncd", "2:0", 4),
        ("ab\n", "2:0", 3),
        ("ä👍x", "1:2", 6),
        ("\ufeffab", "1:0", 3),
        ("\tx", "1:1", 1),
    ],
    ids=["empty", "lf", "crlf", "after-the-last-newline", "wide", "bom", "tab"],
)
def test_a_position_is_converted_to_a_byte_offset(text: str, position: str, offset: int) -> None:
    assert files.offset_at(document(text), position) == offset


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ("0:0", r"line 0 is outside code\.py, which has 2 lines"),
        ("3:0", r"line 3 is outside code\.py, which has 2 lines"),
        ("1:4", r"column 4 is outside line 1 of code\.py, which has 3 characters"),
        ("12", "a position is LINE:COL, such as 12:4, not '12'"),
        ("a:b", "a position is LINE:COL"),
        ("1:-1", "a position is LINE:COL"),
        ("9" * 5_000 + ":0", "a position is LINE:COL"),
        ("", "a position is LINE:COL"),
    ],
)
def test_positions_outside_the_file_are_refused(position: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        files.offset_at(document("abc\r\nd"), position)


def test_what_is_no_utf8_text_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "latin-1").write_bytes(b"caf\xe9\n")
    for name, message in (
        ("", "is a directory"),
        ("pipe", "is not a regular file"),
        ("binary", "is a binary file"),
        ("latin-1", "is not UTF-8 text: byte 0xe9 at offset 3"),
    ):
        with pytest.raises(RequestError, match=message):
            files.read(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "none")


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
def test_the_mode_of_a_file_is_kept(file: Path, mode: int) -> None:
    file.write_text("x")
    file.chmod(mode)
    files.write(files.read(file), "y")
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.read_text() == "y"


@pytest.mark.parametrize(("how", "said"), [("mode", "is read-only"), ("link", "has 2 hard links, and the others")])
def test_a_read_only_file_and_one_with_other_names_stay(file: Path, how: str, said: str) -> None:
    read, other = put(file, "x"), file.with_name("other.py")
    if how == "mode":
        file.chmod(0o444)
    else:
        os.link(file, other)
    with pytest.raises(RequestError, match=f"code\\.py {said}.*; it was not written"):
        files.write(read, "y")
    assert file.read_text() == "x"
    assert how == "mode" or file.samefile(other)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may change the owner of a file")
def test_the_owner_of_a_file_is_kept(file: Path) -> None:
    file.write_text("x")
    os.chown(file, 12345, 54321)
    files.write(files.read(file), "y")
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 54321)


@pytest.mark.parametrize("change", ["content", "replaced", "gone"])
def test_a_file_that_changed_in_the_meantime_is_left_alone(file: Path, change: str) -> None:
    read = put(file, "x")
    if change == "gone":
        file.unlink()
    elif change == "replaced":
        other = file.with_name("other")
        other.write_text("z")
        os.replace(other, file)
    else:
        file.write_text("zz")
    with pytest.raises(RequestError):
        files.write(read, "y")
    assert not file.exists() if change == "gone" else file.read_text().startswith("z")
    assert [path.name for path in file.parent.iterdir()] == ([] if change == "gone" else ["code.py"])


def test_a_disk_that_fills_up_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    read = put(file, "x")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RequestError, match=r"cannot write .*code\.py: No space left on device"):
        files.write(read, "y")
    assert file.read_text() == "x"
    assert [path.name for path in file.parent.iterdir()] == ["code.py"]
