"""The language server with the real model. It starts the service itself, and its suggestions are valid."""

import ast
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.lsp.editor import launched

from lacuna_server.client.lifecycle import Running

TEXT = '''def area(width, height):
    """The area of a rectangle."""
    return ¦


def double(value):
    return 2 * value
'''


@contextmanager
def without_service() -> Iterator[Mapping[str, str]]:
    """Yield an environment without a service. A service that is started in it is stopped at the end."""
    folder = Path(tempfile.mkdtemp(prefix="lsp"))
    try:
        yield os.environ | {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder)}
    finally:
        file = folder / "lacuna/service.json"
        if file.exists():
            os.kill(msgspec.json.decode(file.read_bytes(), type=Running).pid, signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def environment(coder_path: Path) -> Iterator[Mapping[str, str]]:
    with without_service() as variables:
        yield variables


async def test_two_editors_share_the_service_that_the_first_one_starts(environment: Mapping[str, str]) -> None:
    async with launched(environment) as one, launched(environment) as other:
        await one.initialize({"maxTokens": 12, "maxLines": 2, "candidates": 2}, ready=False)
        await other.initialize(ready=False)
        await one.ready()
        await other.ready()
        assert (await other.command("lacuna.status"))["engine"]["sessions"] == 2
        one.open(TEXT)
        suggested = await one.suggest(invoked=True)
        assert 1 <= len(suggested) == len(set(suggested)) <= 2
        for text in suggested:
            assert text.strip()
            ast.parse(one.before + text + one.after)
        one.type(suggested[0][0])  # the rest of the suggestion stays
        assert await one.suggest() == [suggested[0][1:]]
        # One request fills every marker of a file with an indented body, tabs and CRLF.
        other.open("def f(a, b):\r\n\treturn <<fill>>\r\n\r\nx = f(<<fill>>)\r\n")
        answer = await other.command("lacuna.fillRegions", {"textDocument": {"uri": other.uri}, "select": "markers"})
        assert (answer["status"], answer["left"]) == ("applied", 0)
        filled = other.edited()
        assert "<<fill>>" not in filled
        assert filled.count("\r\n") == filled.count("\n")
        ast.parse(filled)


async def test_show_context_reports_the_snippets_for_a_position(environment: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_text("def area_of_circle(radius):\n    return 3.14 * radius**2\n")
    (tmp_path / "main.py").write_text("from shapes import area_of_circle\n\nprint(area_of_circle())\n")
    async with launched(environment) as editor:
        await editor.initialize(folder=tmp_path, ready=False)
        editor.open((tmp_path / "main.py").read_text(), uri=(tmp_path / "main.py").as_uri())
        place = {"line": 2, "character": 21}
        report = await editor.command("lacuna.showContext", {"textDocument": {"uri": editor.uri}, "position": place})
        assert report["workspace"] == str(tmp_path)
        assert ["shapes.py" in snippet["path"] for snippet in report["snippets"]] == [True]
        titles = {seen[0].title for seen in editor.client.progress_reports.values() if seen}
        assert "Reading the project for context" in titles
        # For a file that is not saved yet, the text in the editor counts.
        editor.open((tmp_path / "main.py").read_text(), uri=(tmp_path / "unsaved.py").as_uri())
        report = await editor.command("lacuna.showContext", {"textDocument": {"uri": editor.uri}, "position": place})
        assert "shapes.py" in report["snippets"][0]["path"]
        editor.open("x", uri="untitled:Untitled-1")
        with pytest.raises(Exception, match="Untitled-1 is in no folder yet: save it first"):
            await editor.command("lacuna.showContext", {"textDocument": {"uri": editor.uri}, "position": place})
