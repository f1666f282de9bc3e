"""``lacuna edit``: lines of a file rewritten by an instruction."""

import json
from pathlib import Path

import pytest
from tests.server.cli.conftest import FakeEngine, Lacuna

from lacuna_model.core.params import MORE_TOKENS, EditLines, Status
from lacuna_server.cli import edit as command

TEXT = "a = 1\r\nb = 2\r\nc = 3\r\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "code.py"
    file.write_bytes(TEXT.encode())
    return file


def test_the_diff_is_shown_and_nothing_is_written(lacuna: Lacuna, source: Path, engine: FakeEngine) -> None:
    engine.fills = ("b = 20\r\nc = 3\r\n",)
    code, out, err = lacuna("edit", source, "--lines", "2:3", "--instruction", "count")
    assert (code, err) == (0, "")
    lines = out.decode().splitlines()
    assert "-b = 2" in lines
    assert "+b = 20" in lines
    assert source.read_bytes() == TEXT.encode()
    assert "passes" in lacuna("edit", source, "--lines", "2:3", "--instruction", "count", "--watch")[2]
    (region,) = engine.requests[0].regions
    assert (region.start, region.end, engine.requests[0].task) == (7, 21, EditLines("count"))


def test_the_length_of_fills_does_not_bound_an_edit(lacuna: Lacuna, source: Path, engine: FakeEngine) -> None:
    (source.parent / "lacuna.toml").write_text("max_tokens = 16\n")
    lacuna("edit", source, "--lines", "2", "--instruction", "count", "--no-workspace")
    lacuna("edit", source, "--lines", "2", "--instruction", "count", "--no-workspace", "--more-tokens", 7)
    assert [request.regions[0].max_tokens for request in engine.requests] == [MORE_TOKENS, 7]


def test_a_warning_stands_beside_the_diff_and_a_person_decides(
    lacuna: Lacuna, source: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.fills, engine.warnings = ("b = 20\r\n",), ("the new text no longer defines c",)
    code, out, err = lacuna("edit", source, "--lines", "2:3", "-m", "count")
    assert code == 0
    assert b"+b = 20" in out
    assert err == "lacuna: look at the diff: the new text no longer defines c\n"
    code, out, _ = lacuna("edit", source, "--lines", "2:3", "-m", "count", "--json")
    answer = json.loads(out)
    assert (answer["status"], answer["text"]) == ("ok", "a = 1\r\nb = 20\r\n")
    assert answer["warnings"] == ["the new text no longer defines c"]
    code, out, err = lacuna("edit", source, "--lines", "2:3", "-m", "count", "--write")
    assert (code, err) == (1, "lacuna: not written, since the new text no longer defines c\n")
    assert b"+b = 20" in out
    assert source.read_bytes() == TEXT.encode()
    monkeypatch.setattr(command, "_is_wanted", lambda warning: True)
    code, _, err = lacuna("edit", source, "--lines", "2:3", "-m", "count", "--write")
    assert (code, err) == (0, "")  # the question named the warning
    assert source.read_bytes() == b"a = 1\r\nb = 20\r\n"


def test_a_place_of_a_refactor_whose_text_has_a_warning_stays(
    lacuna: Lacuna, tmp_path: Path, engine: FakeEngine
) -> None:
    file = tmp_path / "code.py"
    file.write_text("x = a.get(1)\n\nz = a.get(2)\n")
    engine.fills, engine.warnings = ("y = 1\n", "z = 5\n"), ("the new text no longer defines x", "")
    code, _, err = lacuna("refactor", "--instruction", "shorten", "a.get($X)", tmp_path, "--apply")
    assert code == 0, err
    assert "the new text no longer defines x; not changed" in err
    assert "--min-confidence" not in err
    assert file.read_text() == "x = a.get(1)\n\nz = 5\n"


@pytest.mark.parametrize("status", ["no_valid_fill", "deadline"])
def test_a_text_that_was_refused_or_not_ended_is_not_written(
    lacuna: Lacuna, source: Path, engine: FakeEngine, status: Status
) -> None:
    engine.fills, engine.status, engine.message = ("b = (\n",), status, "no text was found"
    code, out, err = lacuna("edit", source, "--lines", "2", "-m", "count", "--write", "--deadline-ms", 1)
    assert (code, out) == (1, b"")
    assert err.startswith("lacuna: no text was found\nlacuna: nothing was changed; ")
    assert "--show-refused" not in err
    assert source.read_bytes() == TEXT.encode()


def test_what_was_refused_is_shown_on_request(lacuna: Lacuna, source: Path, engine: FakeEngine) -> None:
    engine.fills, engine.status, engine.message = ("b = 2\r\n",), "no_valid_fill", "the new text is empty"
    engine.refused = ("b = (\r\n",)
    code, out, err = lacuna("edit", source, "--lines", "2", "-m", "count", "--write")
    assert (code, out) == (1, b"")
    assert "--show-refused prints what the model wrote" in err
    code, out, err = lacuna("edit", source, "--lines", "2", "-m", "count", "--write", "--show-refused")
    assert code == 1
    assert {"-b = 2", "+b = ("} <= set(out.decode().splitlines())
    assert "the diff shows what was refused" in err
    assert source.read_bytes() == TEXT.encode()
    code, out, _ = lacuna("edit", source, "--lines", "2", "-m", "count", "--json")
    assert json.loads(out)["refused"] == ["b = (\r\n"]


def test_a_refactor_rewrites_the_lines_of_every_place(lacuna: Lacuna, tmp_path: Path, engine: FakeEngine) -> None:
    file = tmp_path / "code.py"
    file.write_text("import a\nx = a.get(1)\ny = 2\nz = a.get(a.get(3))\n")
    engine.fills = ("x = a.get(1, timeout=1)\n", "z = 5\n")
    code, _, err = lacuna("refactor", "--instruction", "add a timeout", "a.get($X)", tmp_path, "--apply")
    assert code == 0, err
    assert file.read_text() == "import a\nx = a.get(1, timeout=1)\ny = 2\nz = 5\n"
    regions = [region for request in engine.requests for region in request.regions]
    texts = [engine.requests[0].text.encode()[region.start : region.end] for region in regions]
    assert texts == [b"x = a.get(1)\n", b"z = a.get(a.get(3))\n"]
    assert {request.task for request in engine.requests} == {EditLines("add a timeout")}
