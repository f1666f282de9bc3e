"""A fill goes on while the user types along it, and its first line is shown before the others are written."""

import asyncio

from lsprotocol import types
from tests.lsp.editor import Editor, until
from tests.lsp.service import Daemon


def happened(daemon: Daemon, what: str) -> int:
    return daemon.events.count(what)


async def test_a_fill_goes_on_while_the_user_types_along_it_in_a_file_of_another_style(
    editor: Editor, daemon: Daemon
) -> None:
    """The model writes line feeds; the file has other line endings."""
    daemon.plan(fills=["\n\ta = load(path)\n\treturn a"], steps=20, pause=0.1)
    await editor.begin("def one():\r\n\tpass\r\n\r\ndef read(path):¦\r\n")
    answers = [asyncio.ensure_future(editor.suggest())]
    await until(lambda: happened(daemon, "step") >= 6)
    editor.type("\r\n\ta")
    assert await editor.suggest() == [" = load(path)"]
    assert await answers[0] == []
    assert happened(daemon, "start") == 1


async def test_a_fill_that_a_cancelled_request_began_serves_the_next_one(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["total(first, second)"], steps=20, pause=0.1)
    await editor.begin()
    await editor.cancelled(types.TEXT_DOCUMENT_INLINE_COMPLETION, editor.here(), lambda: happened(daemon, "step") >= 3)
    editor.type("to")
    assert await editor.suggest() == ["tal(first, second)"]
    assert happened(daemon, "start") == 1


async def test_the_first_line_is_shown_before_the_others_are_written(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["\n    a = load(path)\n    return a"], steps=20, pause=0.1)
    await editor.begin("def read(path):¦\n")
    assert await editor.suggest() == ["\n    a = load(path)"]
    assert happened(daemon, "done") == 0
    editor.type("\n    a = ")
    assert await editor.suggest() == ["load(path)"]
    await until(lambda: happened(daemon, "done"))
    editor.type("lo")
    while (shown := await editor.suggest()) == ["ad(path)"]:  # the service is done before its result is here
        await asyncio.sleep(0.02)
    assert shown == ["ad(path)\n    return a"]
    assert happened(daemon, "start") == 1


async def test_a_block_whose_first_line_is_unsure_is_not_written_to_its_end(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["\n    a = load(path)\n    return a"], steps=20, pause=0.1, confidence=0.1)
    await editor.begin("def read(path):¦\n")
    assert await editor.suggest() == []
    await until(lambda: happened(daemon, "stopped"))
    assert happened(daemon, "done") == 0


async def test_a_request_that_the_user_waits_for_takes_more_time_and_not_any(editor: Editor, daemon: Daemon) -> None:
    await editor.begin()
    await editor.suggest()
    await editor.suggest(invoked=True)
    automatic, invoked = (request["task"]["due_ms"] for request in daemon.requests)
    assert 0 < automatic < invoked <= 2000


async def test_a_context_that_a_fill_did_without_is_read_next(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(unread=200)
    await editor.begin()
    editor.type("x")
    assert await editor.suggest() == ["filled"]
    await until(lambda: daemon.events[-1:] == ["ahead"])
