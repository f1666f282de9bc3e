"""The tools of agents: what they change, and what they refuse."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import EditLines, FillStats, InfillRequest, InfillResult, Status
from lacuna_server.agents.folders import Folders
from lacuna_server.agents.tools import Tools
from lacuna_server.refactor import journal


class Engine:
    """Fills every region with the next of some texts."""

    def __init__(self, *fills: str, status: Status = "ok", message: str = "", warning: str = "") -> None:
        self.fills, self.status, self.message, self.warning = list(fills), status, message, warning
        self.requests: list[InfillRequest] = []

    def fill(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        fills = tuple(self.fills.pop(0) for _ in request.regions)
        return InfillResult(self.status, fills, FillStats(), self.message, warnings=(self.warning,))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(journal.STATE_VARIABLE, str(tmp_path / "state"))
    inside = tmp_path / "project"
    inside.mkdir()
    (inside / "code.py").write_text("a = 1\nb = <<fill>>\n")
    (inside / "calls.py").write_text("c = get(3)\nd = 4\n")
    (tmp_path / "secret.py").write_text("key = 1\n")
    return inside


Make = Callable[..., Tools]


@pytest.fixture
def make(folder: Path) -> Make:
    return lambda engine=None: Tools(Folders([folder]), (engine or Engine()).fill)


def test_an_edit_is_shown_and_written_only_with_apply(make: Make, folder: Path) -> None:
    engine = Engine("a = 10\n", "a = 10\n")
    tools = make(engine)
    shown = tools.edit("code.py", "ten times", "1:1")
    assert (shown.status, shown.written) == ("changed", ())
    assert "+a = 10" in shown.diff
    assert (folder / "code.py").read_text().startswith("a = 1\n")
    done = tools.edit("code.py", "ten times", "1:1", apply=True)
    assert done.written == (str(folder / "code.py"),)
    assert (folder / "code.py").read_text() == "a = 10\nb = <<fill>>\n"
    assert engine.requests[0].task == EditLines("ten times")


def test_an_answer_says_what_to_look_at_in_the_diff(make: Make) -> None:
    tools = make(Engine("b = 10\n", "b = 10\n", warning="the new text no longer defines a"))
    for apply in (False, True):
        shown = tools.edit("code.py", "ten times", "1:1", apply=apply)
        assert (shown.status, shown.written) == ("changed", ())
        assert shown.message == "not written; look at the diff: the new text no longer defines a"
        assert "-a = 1" in shown.diff


def test_gaps_are_filled_at_markers_or_a_position(make: Make, folder: Path) -> None:
    assert "+b = 2" in make(Engine("2")).fill_gaps("code.py").diff
    assert "+a = 1 + 1" in make(Engine(" + 1")).fill_gaps("code.py", at="1:5").diff


def test_a_refactor_is_previewed_and_then_applied(make: Make, folder: Path) -> None:
    tools = make(Engine("timeout=1"))
    shown = tools.refactor_preview("get($X)", template="get($X, <<fill>>)")
    assert "+c = get(3, timeout=1)" in shown.diff
    assert "get(3)\n" in (folder / "calls.py").read_text()
    assert tools.refactor_apply(shown.plan).written == (str(folder / "calls.py"),)
    assert "get(3, timeout=1)" in (folder / "calls.py").read_text()
    with pytest.raises(RequestError, match="there is no plan"):
        tools.refactor_apply(shown.plan)


def test_a_refactor_by_an_instruction_rewrites_lines(make: Make, folder: Path) -> None:
    tools = make(Engine("c = get(3, 4)\n"))
    assert "+c = get(3, 4)" in tools.refactor_preview("get($X)", instruction="add 4").diff


def test_what_a_refactor_leaves_out_is_said(make: Make, folder: Path) -> None:
    (folder / "a.go").write_text("package a\n\nvar x = old(a + b)\n")
    (folder / "b.go").write_text("package a\n")
    shown = make().refactor_preview("old($X)", template="$X * 2", language="go")
    assert "+var x = (a + b) * 2" in shown.diff
    (folder / "a.go").chmod(0o444)
    kept = make().refactor_preview("old($X)", template="$X * 2", language="go")
    assert (kept.status, kept.message) == ("unchanged", f"{folder / 'a.go'} is read-only; not changed")
    nothing = make().refactor_preview("gone($X)", template="$X", language="go")
    assert nothing.message == "no place matches the pattern, read as call_expression (expression)"


def test_a_refused_text_is_explained(make: Make) -> None:
    outcome = make().syntax_errors("calls.py", "1:1", "a = (1\n")
    assert outcome.status == "refused"
    assert "line 1" in outcome.message
    for text in ("d = 5\n", "d = 5", ""):
        assert make().syntax_errors("calls.py", "1:1", text).status == "unchanged"


@pytest.mark.parametrize("path", ["../secret.py", "link.py", "{outside}", "/etc/hosts", "sub/../../secret.py"])
def test_a_path_outside_the_folders_is_refused(make: Make, folder: Path, path: str) -> None:
    (folder / "link.py").symlink_to(folder.parent / "secret.py")
    named = path.format(outside=folder.parent / "secret.py")
    for call in (
        lambda: make().edit(named, "x", "1:1", apply=True),
        lambda: make().fill_gaps(named),
        lambda: make().syntax_errors(named, "1:1", "x"),
        lambda: make().refactor_preview("get($X)", template="put($X)", paths=[named]),
    ):
        with pytest.raises(RequestError, match="outside the folders of this server"):
            call()
    assert (folder.parent / "secret.py").read_text() == "key = 1\n"


# By its name, its folder, the rules of git, a hidden folder, a dependency, and by what it holds.
KEPT_BACK = {
    "credentials.json": '{"c": "get(3)"}\n',
    ".ssh/k.py": "c = get(3)\n",
    "secrets/k.py": "c = get(3)\n",
    "private.py": "c = get(3)\n",
    "ignored/k.py": "c = get(3)\n",
    ".hidden/k.py": "c = get(3)\n",
    "node_modules/k.js": "c = get(3)\n",
    "keys.py": "c = get(3)\nkey = '-----BEGIN RSA PRIVATE KEY-----'\n",
}


@pytest.mark.parametrize("name", KEPT_BACK)
def test_no_tool_shows_a_line_of_a_file_that_may_hold_a_secret(make: Make, folder: Path, name: str) -> None:
    (folder / ".gitignore").write_text("private.py\nignored/\n")
    secret = folder / name
    secret.parent.mkdir(exist_ok=True)
    secret.write_text(KEPT_BACK[name])
    tools = make(Engine("x = 1", "x = 1", "x = 1"))
    for call in (
        lambda: tools.edit(name, "ten times", "1:1"),
        lambda: tools.fill_gaps(name, at="1:0"),
        lambda: tools.syntax_errors(name, "1:1", "c = ("),
    ):
        with pytest.raises(RequestError, match=r"secret|credential"):
            call()
    place = name.rpartition("/")[0] or "."
    for path in (name, str(secret), place, f"{place}/*{secret.suffix}", f"{place}/**/*{secret.suffix}", "."):
        diff = ""
        with contextlib.suppress(RequestError):
            diff = tools.refactor_preview("get($X)", template="put($X)", paths=[path]).diff
        assert secret.name not in diff
    assert secret.read_text() == KEPT_BACK[name]


@pytest.mark.parametrize(
    ("lines", "instruction", "why"), [("1:9", "x", "line 9 is outside"), ("1:1", " ", "the instruction is empty")]
)
def test_wrong_arguments_are_refused(make: Make, lines: str, instruction: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        make().edit("code.py", instruction, lines)
    for given in ({}, {"template": "a", "instruction": "b"}):
        with pytest.raises(RequestError, match="one of the two"):
            make().refactor_preview("get($X)", **given)


@pytest.mark.parametrize("content", ["import a from 'b/c';\n" * 50_000, "a\0.py", "\ud800.py", "*" * 3_000])
def test_what_can_be_no_path_is_refused_at_once(make: Make, content: str) -> None:
    for call in (
        lambda: make().fill_gaps(content),
        lambda: make().edit(content.replace("\n", " "), "x", "1:1"),
        lambda: make().refactor_preview("a", "b", paths=[content]),
    ):
        with pytest.raises(RequestError, match="is no path") as refused:
            call()
        assert len(str(refused.value)) < 200
