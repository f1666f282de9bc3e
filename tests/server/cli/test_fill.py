"""``lacuna fill`` with several files, with stdin, and asking at every gap."""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.server.cli.conftest import FakeEngine, Lacuna

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult
from lacuna_server.cli import engines

TEXT = "a = <<fill>>\nb = <<fill>>\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "code.py"
    file.write_text(TEXT)
    return file


@pytest.fixture
def fake(engine: FakeEngine) -> FakeEngine:
    """Fills gaps with 1 and 2; alternatives count on."""
    engine.fills = ("1", "2")

    def change(request: InfillRequest, result: InfillResult) -> InfillResult:
        others = tuple((str(10 * number),) for number in range(1, request.candidates))
        return msgspec.structs.replace(result, alternatives=others if len(request.regions) == 1 else ())

    engine.change = change
    return engine


Typing = Callable[[str], None]


@pytest.fixture
def typing(monkeypatch: pytest.MonkeyPatch) -> Typing:
    return lambda lines: monkeypatch.setattr(sys, "stdin", io.StringIO(lines))


def test_several_files_with_one_engine(
    lacuna: Lacuna, source: Path, other: Path, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(engines, "load_engine", lambda model, report: loaded.append(model) or fake)
    code, out, err = lacuna("fill", source, other, "--json")
    first, second = map(json.loads, out.splitlines())
    assert (code, err, len(loaded)) == (0, "", 1)
    assert (first["file"], first["text"]) == (str(source), "a = 1\nb = 2\n")
    assert (second["file"], second["text"]) == (str(other), "c = 1\n")
    assert lacuna("fill", source, other, "--write")[0] == 0
    assert (source.read_text(), other.read_text()) == ("a = 1\nb = 2\n", "c = 1\n")


@pytest.mark.parametrize("at", ["2:4", "2:8", "2:12"])
def test_a_marker_at_the_position_is_the_gap(lacuna: Lacuna, source: Path, fake: FakeEngine, at: str) -> None:
    fake.fills = ("1",)
    assert lacuna("complete", source, "--at", at)[0] == 0
    (region,) = fake.requests[0].regions
    assert TEXT.encode()[region.start : region.end] == b"<<fill>>"
    assert region.start > TEXT.index("b")


@pytest.fixture
def other(source: Path) -> Path:
    file = source.with_name("other.py")
    file.write_text("c = <<fill>>\n")
    return file


def test_a_file_that_fails_does_not_stop_the_others(
    lacuna: Lacuna, source: Path, other: Path, fake: FakeEngine
) -> None:
    refused = InfillResult("no_valid_fill", ("<<fill>>",) * 2, FillStats())
    fake.change = lambda request, result: refused if request.path == str(source) else result
    code, _, err = lacuna("fill", source, other, "--write")
    assert (code, err.splitlines()[0]) == (1, f"lacuna: {source}: no valid fill found")
    assert (source.read_text(), other.read_text()) == (TEXT, "c = 1\n")


def test_each_gap_that_has_a_fill_is_filled_and_the_others_are_named(
    lacuna: Lacuna, source: Path, fake: FakeEngine
) -> None:
    def change(request: InfillRequest, result: InfillResult) -> InfillResult:
        refused = InfillResult("no_valid_fill", ("<<fill>>",) * len(request.regions), FillStats(), "nothing fits")
        return refused if request.text[: request.regions[0].start].endswith("a = ") else result

    fake.change = change
    code, out, err = lacuna("fill", source)
    assert (code, out) == (1, b"")
    assert err.splitlines()[1] == f"lacuna: lacuna fill --each {source} fills the gaps that can be filled"
    assert lacuna("fill", source, "--each") == (1, b"a = <<fill>>\nb = 1\n", "lacuna: line 1: nothing fits\n")
    assert [request.text for request in fake.requests[-2:]] == [TEXT, TEXT]
    assert lacuna("fill", source, "--each", "--write")[0] == 1
    assert source.read_text() == "a = <<fill>>\nb = 1\n"


def test_a_deadline_that_leaves_the_gaps_is_a_failure(
    lacuna: Lacuna, source: Path, fake: FakeEngine, typing: Typing
) -> None:
    fake.fills, fake.status = ("<<fill>>", "<<fill>>"), "deadline"
    late = "lacuna: the deadline ran out before anything valid was written\n"
    assert lacuna("complete", source, "--at", "1:4") == (1, b"", late)
    assert lacuna("fill", source, "--each")[0] == lacuna("fill", source)[0] == 1
    typing("y\ny\n")
    code, out, _ = lacuna("fill", source, "-i")
    assert (code, out, source.read_text()) == (1, b"", TEXT)


@pytest.mark.parametrize("arguments", [["--write"], ["--interactive"]])
def test_a_file_that_changes_meanwhile_does_not_stop_the_others(
    lacuna: Lacuna, source: Path, other: Path, fake: FakeEngine, typing: Typing, arguments: list[str]
) -> None:
    last = source.with_name("last.py")
    last.write_text("d = <<fill>>\n")

    def change(request: InfillRequest, result: InfillResult) -> InfillResult:
        if request.path == str(other):
            other.write_text("mine\n")
        return result

    fake.change = change
    typing("a\n")
    code, _, err = lacuna("fill", source, other, last, *arguments)
    assert code == 2
    assert f"lacuna: {other} has changed since it was read; it was not written\n" in err
    assert (source.read_text(), other.read_text(), last.read_text()) == ("a = 1\nb = 2\n", "mine\n", "d = 1\n")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows knows other rules")
def test_a_file_that_must_not_be_replaced_is_refused_before_the_model_works(
    lacuna: Lacuna, source: Path, other: Path, fake: FakeEngine
) -> None:
    other.chmod(0o444)
    found = lacuna("fill", source, other, "--write")
    assert found == (2, b"", f"lacuna: {other} is read-only; nothing was written\n")
    assert fake.requests == []


def test_stdin_is_filled_to_stdout(
    lacuna: Lacuna, fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given"
    given.write_bytes("ä = <<fill>>\r\n".encode())
    with given.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert lacuna("fill", "-", "--language", "python", "--no-workspace") == (0, "ä = 1\r\n".encode(), "")
    assert (fake.requests[0].language, fake.requests[0].path) == ("python", "-")
    assert lacuna("fill", "-") == (2, b"", "lacuna: - needs --language, because stdin has no file name\n")


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ("y\ny\n", "a = 1\nb = 2\n"),
        ("n\ny\n", "a = <<fill>>\nb = 2\n"),
        ("y\nq\n", "a = 1\nb = <<fill>>\n"),
        ("q\n", TEXT),
        ("r\ny\nn\n", "a = 10\nb = <<fill>>\n"),
        ("r\nr\ny\nn\n", "a = 20\nb = <<fill>>\n"),
        ("?\na\n", "a = 1\nb = 2\n"),
    ],
)
def test_asking_at_every_gap(
    lacuna: Lacuna, source: Path, fake: FakeEngine, typing: Typing, answers: str, text: str
) -> None:
    typing(answers)
    code, _, _ = lacuna("fill", source, "--interactive")
    assert (code, source.read_text()) == (0, text)


def test_another_fill_sees_the_other_gaps_filled(
    lacuna: Lacuna, source: Path, fake: FakeEngine, typing: Typing
) -> None:
    fake.fills = ("ä👍", "2")
    typing("y\nr\ny\n")
    assert lacuna("fill", source, "-i")[0] == 0
    again = fake.requests[1]
    (gap,) = again.regions
    assert again.text == "a = ä👍\nb = <<fill>>\n"
    assert again.text.encode()[gap.start : gap.end] == b"<<fill>>"
    assert source.read_text() == "a = ä👍\nb = ä👍\n"  # the fake's first text is new for the second gap


def test_a_fill_is_edited(
    lacuna: Lacuna, source: Path, fake: FakeEngine, typing: Typing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/1/42/")
    typing("e\ny\nn\n")
    assert lacuna("fill", source, "-i")[0] == 0
    assert source.read_text() == "a = 42\nb = <<fill>>\n"
    source.write_bytes(TEXT.replace("\n", "\r\n").encode())
    monkeypatch.setenv("VISUAL", "sed -i 's/1/(\\n1)/'")
    typing("e\ny\nn\n")
    assert lacuna("fill", source, "-i")[0] == 0
    assert source.read_bytes() == b"a = (\r\n1)\r\nb = <<fill>>\r\n"
    monkeypatch.setenv("VISUAL", "false")
    source.write_text(TEXT)
    typing("e\ny\nn\n")
    code, _, err = lacuna("fill", source, "-i")
    assert (code, source.read_text()) == (0, "a = 1\nb = <<fill>>\n")
    assert "lacuna: the editor false failed" in err


@pytest.mark.parametrize(
    ("answers", "texts"),
    [
        ("a\n", ("a = 1\nb = 2\n", "c = 1\n")),
        ("y\nq\n", ("a = 1\nb = <<fill>>\n", "c = <<fill>>\n")),
        ("y\ny\n", (TEXT, "c = <<fill>>\n")),
    ],
    ids=["all", "quit", "input-ends"],
)
def test_all_and_quit_hold_for_the_files_that_follow(
    lacuna: Lacuna, source: Path, other: Path, fake: FakeEngine, typing: Typing, answers: str, texts: tuple[str, str]
) -> None:
    typing(answers)
    lacuna("fill", source, other, "-i")
    assert (source.read_text(), other.read_text()) == texts
    assert len(fake.requests) == (1 if "q" in answers else 2)


def test_the_settings_of_the_files_project_hold(lacuna: Lacuna, source: Path, fake: FakeEngine) -> None:
    source.with_name("lacuna.toml").write_text("max_tokens = 7\nworkspace = false\n")
    assert lacuna("fill", source)[0] == 0
    assert lacuna("fill", source, "--max-tokens", "8")[0] == 0
    assert [{region.max_tokens for region in request.regions} for request in fake.requests] == [{7}, {8}]
    assert fake.requests[0].workspace == ""


def test_without_a_project_the_files_beside_it_that_a_file_names_are_read(
    lacuna: Lacuna, source: Path, fake: FakeEngine
) -> None:
    for name in ("ledger", "other"):
        source.with_name(f"{name}.py").write_text(f"def load_{name}(path):\n    return path\n")
    source.write_text("import ledger\n\nrows = ledger.\n")
    lacuna("complete", source, "--at", "3:14")
    lacuna("complete", source, "--at", "3:14", "--no-workspace")
    source.write_text("import ledger\n\nrows = ledger.<<fill>>\n")
    lacuna("fill", source)
    found = [[(one.path, one.text) for one in request.snippets] for request in fake.requests]
    known = [("ledger.py", "def load_ledger(path):\n")]
    assert found == [known, [], known]
