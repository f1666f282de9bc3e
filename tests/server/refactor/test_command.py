import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.hub import models
from lacuna_server import __main__ as cli
from lacuna_server.cli import engines

from .bench import Scripted

Lacuna = Callable[..., tuple[int, str, str]]
ADD = ("--lang", "python", "get($$$ARGS)", "get($$$ARGS, timeout=<<fill:line>>)")
BEFORE = "\ufeffx = get(1)  # é\r\ny = get(2)\r\n".encode()
AFTER = BEFORE.replace(b"1)", b"1, timeout=3)").replace(b"2)", b"2, timeout=3)")


class Engine:
    """Replaces the real engine."""

    def __init__(self) -> None:
        self.answer = Scripted(lambda region: "3")
        self.loaded = 0

    def load(self, model: str, report: Callable[[str], None]) -> "Engine":
        self.loaded += 1
        return self

    def fill(self, request: InfillRequest) -> InfillResult:
        return self.answer(request)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(models, "path", lambda info: Path("weights.gguf"))
    monkeypatch.setattr(engines, "load_engine", engine.load)
    return engine


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.py").write_bytes(BEFORE)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "b.py").write_bytes(BEFORE)
    (tmp_path / "c.js").write_text("get(1)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lacuna(capfd: pytest.CaptureFixture[str]) -> Lacuna:
    """Runs the command in this process, and returns its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(["refactor", *arguments])
        captured = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    return run


def contents(project: Path) -> list[bytes]:
    return [(project / name).read_bytes() for name in ("a.py", "lib/b.py")]


def test_the_preview_writes_nothing(lacuna: Lacuna, project: Path, engine: Engine) -> None:
    code, out, err = lacuna(*ADD)
    assert code == 0
    assert "+y = get(2, timeout=3)" in out.splitlines()
    assert [line for line in out.splitlines() if line.startswith("--- ")] == ["--- a.py", "--- lib/b.py"]
    assert err == "lacuna: 4 places in 2 files can be changed; --apply or --interactive writes the changes\n"
    assert contents(project) == [BEFORE, BEFORE]
    assert engine.loaded == 1


def test_apply_writes_all_files(lacuna: Lacuna, project: Path, engine: Engine) -> None:
    code, _, err = lacuna(*ADD, "--apply", ".")
    assert (code, err) == (0, "lacuna: changed 4 places in 2 files\n")
    assert contents(project) == [AFTER, AFTER]
    assert (project / "c.js").read_text() == "get(1)\n"


def test_json_output_contains_the_plan(lacuna: Lacuna, project: Path, engine: Engine) -> None:
    code, out, _ = lacuna(*ADD, "--json", "lib")
    answer = json.loads(out)
    assert code == 0
    assert answer["applied"] is False
    (file,) = answer["plan"]["files"]
    assert file["path"] == "lib/b.py"
    assert [edit["new_text"] for edit in file["edits"]] == ["get(1, timeout=3)", "get(2, timeout=3)"]
    assert contents(project) == [BEFORE, BEFORE]
    assert json.loads(lacuna(*ADD, "--json", "--apply")[1])["applied"] is True
    assert contents(project) == [AFTER, AFTER]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ("y\nn\nn\ny\n", [BEFORE.replace(b"1)", b"1, timeout=3)"), BEFORE.replace(b"2)", b"2, timeout=3)")]),
        ("y\nq\n", [BEFORE.replace(b"1)", b"1, timeout=3)"), BEFORE]),
        ("y\n", [BEFORE, BEFORE]),
    ],
    ids=["each", "quit", "input-ends"],
)
def test_interactive_asks_at_every_place(
    project: Path, engine: Engine, lacuna: Lacuna, answers: str, expected: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    code, out, err = lacuna(*ADD, "--interactive")
    assert contents(project) == expected
    assert "+\ufeffx = get(1, timeout=3)" in out
    assert code == (0 if answers != "y\n" else 2)
    assert ("the input ended before every place was decided" in err) == (answers == "y\n")


def test_a_failed_place_is_named_and_the_rest_is_written(lacuna: Lacuna, project: Path, engine: Engine) -> None:
    def fill_first(region: Region) -> str | None:
        return "3" if region.start < 24 else None

    engine.answer.fill = fill_first
    code, _, err = lacuna(*ADD, "--apply")
    assert code == 1
    assert err.splitlines()[0] == "lacuna: a.py: get(2): nothing fits; not changed"
    assert contents(project) == [BEFORE.replace(b"1)", b"1, timeout=3)")] * 2


def test_unsure_fills_are_left_out_and_listed_at_the_end(lacuna: Lacuna, project: Path, engine: Engine) -> None:
    engine.answer.sure = lambda region: 0.1 if region.start < 24 else 0.8
    code, out, err = lacuna(*ADD, "--min-confidence", "0.5", "lib")
    assert (code, out.count("+y = get(2, timeout=3)"), out.count("+x")) == (0, 1, 0)
    assert err.splitlines() == [
        "lacuna: lib/b.py: get(1): the model is unsure: confidence 0.1 is below 0.5; not changed",
        "lacuna: --min-confidence 0 shows these unsure fills, too",
        "lacuna: 1 place in 1 file can be changed; the least certain fill has a confidence of 0.8; "
        "--apply or --interactive writes the changes",
    ]
    assert lacuna(*ADD, "--min-confidence", "0.5", "--apply", "lib")[0] == 0
    assert contents(project) == [BEFORE, BEFORE.replace(b"2)", b"2, timeout=3)")]
    edits = json.loads(lacuna(*ADD, "--min-confidence", "0", "--json", "a.py")[1])["plan"]["files"][0]["edits"]
    assert [(edit["status"], edit["confidence"]) for edit in edits] == [("ready", 0.1), ("ready", 0.8)]


def test_queries_and_ranges_select_places(lacuna: Lacuna, project: Path, engine: Engine) -> None:
    query = "(call arguments: (argument_list (integer) @place))"
    assert lacuna("--lang", "python", "--query", query, "<<fill>>", "--apply", "lib")[0] == 0
    assert contents(project) == [BEFORE, BEFORE.replace(b"1)", b"3)").replace(b"2)", b"3)")]
    assert lacuna("--range", "a.py:2:0-2:1", "z", "--range", "a.py:1:8-1:9", "--apply")[0] == 0
    assert contents(project)[0] == "\ufeffx = get(z)  # é\r\nz = get(2)\r\n".encode()
    assert lacuna("--range", "a.py:2:8-2:9", "--apply")[0] == 0
    assert contents(project)[0] == "\ufeffx = get(z)  # é\r\nz = get(3)\r\n".encode()


def test_where_no_place_matches_it_says_so_and_fails(lacuna: Lacuna, project: Path, engine: Engine) -> None:
    nothing = ("--lang", "python", "nothing($A)", "x")
    said = (1, "", "lacuna: no place matches the pattern, read as call (code)\n")
    assert lacuna(*nothing) == lacuna(*nothing, "--apply") == said
    code, out, _ = lacuna(*nothing, "--json")
    assert (code, json.loads(out)["plan"]["files"]) == (1, [])


@pytest.mark.parametrize("option", ["--apply", "--interactive"])
def test_a_file_that_changes_meanwhile_stops_everything(
    lacuna: Lacuna, project: Path, engine: Engine, option: str
) -> None:
    def edited(region: Region) -> str:
        (project / "lib" / "b.py").write_text("mine = 'ééé'\n")
        return "3"

    engine.answer.fill = edited
    code, out, err = lacuna(*ADD, option, "lib", "a.py")
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
    lacuna: Lacuna, project: Path, engine: Engine, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = lacuna(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lacuna: ")
    assert message in err
    assert err.count("\n") == 1


def test_the_recipes_are_listed(lacuna: Lacuna) -> None:
    listed = json.loads(lacuna("--list-recipes", "--json")[1])["recipes"]
    names = ["annotations", "arms", "docstrings", "logging", "parameter", "test-bodies"]
    assert [recipe["name"] for recipe in listed] == names
    table = lacuna("--list-recipes")[1]
    assert all(recipe["summary"] in table for recipe in listed)
