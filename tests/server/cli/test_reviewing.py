import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from tests.server.refactor.bench import Scripted

from lacuna_model.core.params import MAX_CANDIDATES, InfillRequest, InfillResult
from lacuna_server import files
from lacuna_server.cli import reviewing, terminal
from lacuna_server.refactor.fill import FileFill, fill_files
from lacuna_server.refactor.places.gather import gather
from lacuna_server.refactor.plan import Plan
from lacuna_server.refactor.rewriting.refactoring import by_structure, places

TEXT = "a = get(1)\r\nb = get(2)\r\nc = get(3)\r\n"


class Candidates(Scripted):
    """Answers a request for several candidates with further fills, the last of which is unsound."""

    def __call__(self, request: InfillRequest) -> InfillResult:
        result = super().__call__(request)
        if request.candidates == 1:
            return result
        assert request.candidates == MAX_CANDIDATES
        return msgspec.structs.replace(result, alternatives=(("8",), ("9",), (")",)))


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Asks about three places of a file, gives the answers, and returns the text after the accepted edits."""
    file = tmp_path / "code.py"
    file.write_bytes(TEXT.encode())

    def asked(answers: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
        sources, _ = gather([str(file)])
        found, _ = places(by_structure("get($A)", "get($A, <<fill>>)"), sources)
        answer = Candidates(lambda region: "7")
        fills = [FileFill(source, rewrites) for source, rewrites in found]
        fill_files(fills, answer, lambda done: None)
        plan = Plan("title", tuple(fill.edits() for fill in fills))
        accepted = reviewing.ask(plan, {fill.source.path: fill for fill in fills}, answer)
        return accepted.files[0].rewritten(TEXT.encode()).decode() if accepted.files else TEXT

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
    ],
    ids=["all", "other-keys", "another-fill", "no-more-fills"],
)
def test_keys_decide_about_places(ask: Callable[[str], str], answers: str, expected: tuple[str, str, str]) -> None:
    assert ask(answers) == changed(*expected)


def test_a_fill_is_edited_in_the_editor_of_the_user(
    ask: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text("import sys; open(sys.argv[1], 'w').write('get(\\n  0\\n)\\n')")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    assert ask("e\ny\nq\n") == TEXT.replace("get(1)", "get(\r\n  0\r\n)")
    assert "+  0" in capfd.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("editor", "said"),
    [
        ("import sys; open(sys.argv[1], 'w').write('get((')", "with this text the file has a syntax error"),
        ("import sys; sys.exit(3)", "returned non-zero exit status 3"),
    ],
    ids=["error", "editor-fails"],
)
def test_a_text_that_is_not_valid_is_not_taken(
    ask: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    editor: str,
    said: str,
) -> None:
    (tmp_path / "editor.py").write_text(editor)
    monkeypatch.setenv("VISUAL", f"{sys.executable} {tmp_path / 'editor.py'}")
    assert ask("e\ny\nq\n") == changed("7")
    assert said in capfd.readouterr().err


def test_a_person_sees_the_whole_of_a_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "long.py"
    file.write_text(f"get('{'x' * 80}')\n")
    screen = Console(file=io.StringIO(), force_terminal=True, width=40, color_system=None)
    monkeypatch.setattr(terminal, "_screen", lambda: screen)
    terminal.print_diff(files.read(file), f"get('{'x' * 80}', timeout=1)\n")
    assert isinstance(screen.file, io.StringIO)
    assert ", timeout=1)" in screen.file.getvalue().replace("\n", "")


def test_on_a_terminal_a_key_needs_no_enter(ask: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    done = threading.Event()

    def press() -> None:
        while not done.wait(0.05):  # keys that are pressed before the question are dropped
            os.write(ours, b"a")

    with os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs) as terminal:
        monkeypatch.setattr(io, "StringIO", lambda answers: terminal)
        presses = threading.Thread(target=press)
        presses.start()
        try:
            assert ask("") == changed("7", "7", "7")
        finally:
            done.set()
            presses.join()
