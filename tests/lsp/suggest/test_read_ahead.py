"""Read-ahead: the engine reads the document around the cursor while the user does not type."""

import asyncio

from tests.lsp.editor import Editor, until
from tests.lsp.service import Daemon


def places(daemon: Daemon) -> list[tuple[str, str]]:
    """The prefix and the suffix of every read-ahead request."""
    asked = [event["request"] for event in daemon.log if event["event"] == "ahead"]
    return [(one["text"][: one["regions"][0]["start"]], one["text"][one["regions"][0]["end"] :]) for one in asked]


def focus(editor: Editor, line: int, character: int) -> None:
    place = {"textDocument": {"uri": editor.uri}, "position": {"line": line, "character": character}}
    editor.client.protocol.notify("textDocument/didFocus", place)


async def test_a_document_is_read_when_it_is_opened(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("one = 1\ntwo = 2\n")
    await until(lambda: places(daemon) == [("", "one = 1\ntwo = 2\n")])


async def test_a_document_is_read_again_when_typing_pauses(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("value = ¦\n")
    for letter in "one":
        editor.type(letter)
    await until(lambda: places(daemon))
    assert places(daemon) == [("value = one", "\n")]


async def test_nothing_is_read_ahead_if_the_setting_is_off(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("value = ¦\n", readAhead=False)
    editor.type("x")
    await editor.suggest()
    await asyncio.sleep(1.0)
    assert not places(daemon)


async def test_an_open_document_is_read_when_the_engine_becomes_ready(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("value = ¦\n", ready=False)
    await editor.ready()
    await until(lambda: places(daemon) == [("", "value = \n")])
