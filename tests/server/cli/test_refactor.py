"""``lacuna refactor``: proposed, asked about and written."""

import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import msgspec
import pytest
from rich.console import Console
from tests.server.cli.conftest import FakeEngine
from tests.server.cli.conftest import Lacuna as Command
from tests.server.refactor.bench import Scripted

from lacuna_model.core.params import MAX_CANDIDATES, InfillRequest, InfillResult, Region
from lacuna_server import files
from lacuna_server.cli import terminal
from lacuna_server.refactor.journal import STATE_VARIABLE

Lacuna = Callable[..., tuple[int, str, str]]
Ask = Callable[[str | TextIO], tuple[str, str, str]]
ADD = ("--lang", "python", "get($$$ARGS)", "get($$$ARGS, timeout=<<fill:line>>)")
BEFORE = "\ufeffx = get(1)  # é\r\ny = get(2)\r\n".encode()
AFTER = BEFORE.replace(b"1)", b"1, timeout=3)").replace(b"2)", b"2, timeout=3)")


@pytest.fixture
def answer(engine: FakeEngine, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Answers for the engine."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path_factory.mktemp("state")))
    answer = Candidates(lambda region: "3")
    engine.change = lambda request, result: answer(request)
    return answer


class Candidates(Scripted):
    """Answers a request for several candidates with further fills, the last of which is unsound."""

    def __call__(self, request: InfillRequest) -> InfillResult:
        result = super().__call__(request)
        if request.candidates == 1:
            return result
        assert request.candidates == MAX_CANDIDATES
        return msgspec.structs.replace(result, alternatives=(("8",), ("9",), (")",)))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.py").write_bytes(BEFORE)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "b.py").write_bytes(BEFORE)
    (tmp_path / "c.js").write_text("get(1)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refactor(lacuna: Command) -> Lacuna:
    """Runs the command in this process, and returns its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code, out, err = lacuna("refactor", *arguments)
        return code, out.decode(), err

    return run


def contents(project: Path) -> list[bytes]:
    return [(project / name).read_bytes() for name in ("a.py", "lib/b.py")]


def test_the_preview_writes_nothing_and_apply_all_files(refactor: Lacuna, project: Path, answer: Scripted) -> None:
    code, out, err = refactor(*ADD)
    assert code == 0
    assert "+y = get(2, timeout=3)" in out.splitlines()
    assert [line for line in out.splitlines() if line.startswith("--- ")] == ["--- a.py", "--- lib/b.py"]
    assert err == "lacuna: 4 places in 2 files can be changed; --apply or --interactive writes the changes\n"
    assert contents(project) == [BEFORE, BEFORE]
    code, _, err = refactor(*ADD, "--apply", ".")
    assert (code, err) == (0, "lacuna: changed 4 places in 2 files\n")
    assert contents(project) == [AFTER, AFTER]
    assert (project / "c.js").read_text() == "get(1)\n"


def test_json_output_contains_the_plan(refactor: Lacuna, project: Path, answer: Scripted) -> None:
    code, out, _ = refactor(*ADD, "--json", "lib")
    answer = json.loads(out)
    assert code == 0
    assert answer["applied"] is False
    (file,) = answer["plan"]["files"]
    assert file["path"] == "lib/b.py"
    assert [edit["new_text"] for edit in file["edits"]] == ["get(1, timeout=3)", "get(2, timeout=3)"]
    assert contents(project) == [BEFORE, BEFORE]
    assert json.loads(refactor(*ADD, "--json", "--apply")[1])["applied"] is True
    assert contents(project) == [AFTER, AFTER]


def test_a_failed_place_is_named_and_the_rest_is_written(refactor: Lacuna, project: Path, answer: Scripted) -> None:
    def fill_first(region: Region) -> str | None:
        return "3" if region.start < 24 else None

    answer.fill = fill_first
    code, _, err = refactor(*ADD, "--apply")
    assert code == 1
    assert err.splitlines()[0] == "lacuna: a.py: get(2): nothing fits; not changed"
    assert contents(project) == [BEFORE.replace(b"1)", b"1, timeout=3)")] * 2


def test_unsure_fills_are_left_out_and_listed_at_the_end(refactor: Lacuna, project: Path, answer: Scripted) -> None:
    answer.sure = lambda region: 0.1 if region.start < 24 else 0.8
    code, out, err = refactor(*ADD, "--min-confidence", "0.5", "lib")
    assert (code, out.count("+y = get(2, timeout=3)"), out.count("+x")) == (0, 1, 0)
    assert err.splitlines() == [
        "lacuna: lib/b.py: get(1): the model is unsure: confidence 0.1 is below 0.5; not changed",
        "lacuna: --min-confidence 0 shows these unsure fills, too",
        "lacuna: 1 place in 1 file can be changed; the least certain fill has a confidence of 0.8; "
        "--apply or --interactive writes the changes",
    ]
    assert refactor(*ADD, "--min-confidence", "0.5", "--apply", "lib")[0] == 0
    assert contents(project) == [BEFORE, BEFORE.replace(b"2)", b"2, timeout=3)")]
    edits = json.loads(refactor(*ADD, "--min-confidence", "0", "--json", "a.py")[1])["plan"]["files"][0]["edits"]
    assert [(edit["status"], edit["confidence"]) for edit in edits] == [("ready", 0.1), ("ready", 0.8)]


def test_queries_and_ranges_select_places(refactor: Lacuna, project: Path, answer: Scripted) -> None:
    query = "(call arguments: (argument_list (integer) @place))"
    assert refactor("--lang", "python", "--query", query, "<<fill>>", "--apply", "lib")[0] == 0
    assert contents(project) == [BEFORE, BEFORE.replace(b"1)", b"3)").replace(b"2)", b"3)")]
    assert refactor("--range", "a.py:2:0-2:1", "z", "--range", "a.py:1:8-1:9", "--apply")[0] == 0
    assert contents(project)[0] == "\ufeffx = get(z)  # é\r\nz = get(2)\r\n".encode()
    assert refactor("--range", "a.py:2:8-2:9", "--apply")[0] == 0
    assert contents(project)[0] == "\ufeffx = get(z)  # é\r\nz = get(3)\r\n".encode()


def test_where_no_place_matches_it_says_so_and_fails(refactor: Lacuna, project: Path, answer: Scripted) -> None:
    nothing = ("--lang", "python", "nothing($A)", "x")
    said = (1, "", "lacuna: no place matches the pattern, read as call (code)\n")
    assert refactor(*nothing) == refactor(*nothing, "--apply") == said
    code, out, _ = refactor(*nothing, "--json")
    assert (code, json.loads(out)["plan"]["files"]) == (1, [])


@pytest.mark.parametrize("option", ["--apply", "--interactive"])
def test_a_file_that_changes_meanwhile_stops_everything(
    refactor: Lacuna, project: Path, answer: Scripted, option: str
) -> None:
    def edited(region: Region) -> str:
        (project / "lib" / "b.py").write_text("mine = 'ééé'\n")
        return "3"

    answer.fill = edited
    code, out, err = refactor(*ADD, option, "lib", "a.py")
    assert (code, "ééé" in str(out)) == (2, False)
    assert err.endswith("lib/b.py has changed since it was searched; nothing was written\n")
    assert contents(project) == [BEFORE, "mine = 'ééé'\n".encode()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a refactor needs a pattern and a template, or --recipe NAME"),
        (("get($A)", "put($A)", "."), "files of several languages (javascript, python); say which with --lang"),
        (("--lang", "klingon", "get($A)", "put($A)"), "unknown language 'klingon'"),
        (("--lang", "python", "get((", "x"), "the pattern is not python"),
        (("--lang", "python", "get($A)", "put($B)"), "the template uses $B, which nothing binds; bound: $A, $MATCH"),
        (("--lang", "python", "get($A)", "put($A)", "none"), "none: no such file or folder"),
        (("--lang", "python", "--query", "(cal) @place", "x"), "the query is not one for python"),
        (("--query", "(call) @place", "x"), "--query needs --lang"),
        (("--range", "a.py:1", "x"), "--range expects FILE:LINE:COL-LINE:COL, not 'a.py:1'"),
        (("--range", "a.py:9:0-9:1", "x"), "line 9 is outside a.py"),
        (("--range", "a.py:1:3-1:1", "x"), "ends before it starts"),
        (("--range", "a.py:1:0-1:1", "x", "lib"), "--range names the file itself"),
        (("--recipe", "magic"), "unknown recipe 'magic'"),
        (("--recipe", "logging", "--set", "x"), "--set expects NAME=VALUE, not 'x'"),
        (("--set", "a=b", "get($A)", "x"), "--set needs --recipe"),
        (("--recipe", "logging", "--query", "x"), "--query and --recipe cannot be combined"),
        (("--interactive", "--json", "a", "b"), "--interactive asks"),
    ],
)
def test_bad_input_is_reported_in_one_line_with_exit_code_2(
    refactor: Lacuna, project: Path, answer: Scripted, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = refactor(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lacuna: ")
    assert message in err
    assert err.count("\n") == 1


def test_the_recipes_are_listed(refactor: Lacuna) -> None:
    listed = json.loads(refactor("--list-recipes", "--json")[1])["recipes"]
    names = ["annotations", "arms", "docstrings", "logging", "parameter", "test-bodies"]
    assert [recipe["name"] for recipe in listed] == names
    table = refactor("--list-recipes")[1]
    assert all(recipe["summary"] in table for recipe in listed)


TEXT = "a = get(1)\r\nb = get(2)\r\nc = get(3)\r\n"


@pytest.fixture
def ask(refactor: Lacuna, tmp_path: Path, answer: Scripted, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Asks about three places of a file; returns its text after the answers, stdout and stderr."""
    file = tmp_path / "code.py"
    file.write_bytes(TEXT.encode())
    answer.fill = lambda region: "7"

    def asked(answers: str | TextIO) -> tuple[str, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(answers) if isinstance(answers, str) else answers)
        _, out, err = refactor("get($A)", "get($A, <<fill>>)", str(file), "--interactive")
        return file.read_bytes().decode(), out, err

    return asked


def changed(*fills: str) -> str:
    """The text with these fills at its first places; "" leaves a place as it was."""
    text = TEXT
    for number, fill in enumerate(fills, start=1):
        text = text.replace(f"get({number})", f"get({number}, {fill})" if fill else f"get({number})")
    return text


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ("n\na\n", ("", "7", "7")),
        ("\n?\nz\ny\nn\nn\n", ("7", "", "")),
        ("r\ny\nr\nr\na\n", ("8", "9", "7")),
        ("r\nr\nr\nr\ny\nq\n", ("9", "", "")),
        ("y\ny\n", ("", "", "")),
    ],
    ids=["all", "other-keys", "another-fill", "no-more-fills", "input-ends"],
)
def test_keys_decide_about_places(ask: Ask, answers: str, expected: tuple[str, str, str]) -> None:
    text, out, err = ask(answers)
    assert text == changed(*expected)
    assert "+a = get(1, 7)" in out
    assert ("the input ended before every place was decided" in err) == (not any(expected))


@pytest.mark.parametrize(
    ("written", "answers", "expected", "said"),
    [
        (r"get(\n  0\n)\n", "e\ny\nq\n", TEXT.replace("get(1)", "get(\r\n  0\r\n)"), "+  0\n"),
        ("get((", "e\ny\nq\n", changed("7"), "with this text the file has a syntax error"),
        ("get(0)", "e\nr\ny\nq\n", changed("7"), "+a = get(0)\n"),
    ],
    ids=["valid", "error", "the-own-fill-again"],
)
def test_a_fill_is_edited_and_taken_if_it_is_valid(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, answers: str, expected: str, said: str
) -> None:
    (tmp_path / "editor.py").write_text(f"import sys; open(sys.argv[1], 'w').write('{written}')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {tmp_path / 'editor.py'}")
    text, out, err = ask(answers)
    assert text == expected
    assert said in out + err


def test_a_person_sees_the_whole_of_a_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "long.py"
    file.write_text(f"get('{'x' * 80}')\n")
    screen = Console(file=io.StringIO(), force_terminal=True, width=40, color_system=None)
    monkeypatch.setattr(terminal, "_screen", lambda: screen)
    terminal.print_diff(files.read(file), f"get('{'x' * 80}', timeout=1)\n")
    assert isinstance(screen.file, io.StringIO)
    assert ", timeout=1)" in screen.file.getvalue().replace("\n", "")


def test_on_a_terminal_a_key_needs_no_enter(ask: Ask) -> None:
    ours, theirs = os.openpty()
    done = threading.Event()

    def press() -> None:
        while not done.wait(0.05):  # keys that are pressed before the question are dropped
            os.write(ours, b"a")

    with os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs) as terminal:
        presses = threading.Thread(target=press)
        presses.start()
        try:
            assert ask(terminal)[0] == changed("7", "7", "7")
        finally:
            done.set()
            presses.join()
