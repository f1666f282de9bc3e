"""Invalid input: the server gives a clear answer to every case and continues to work."""

import asyncio
import json
import uuid
from concurrent.futures import Future
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from .editor import Editor, launched, until
from .service import Daemon


async def ask(editor: Editor, method: str, params: object) -> Any:
    """Send a request that the types of the client would not allow."""
    protocol, id, answer = editor.client.protocol, uuid.uuid4().hex, Future[Any]()
    protocol._request_futures[id] = answer
    protocol._send_data({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    return await asyncio.wrap_future(answer)


def tell(editor: Editor, method: str, params: object) -> None:
    """Send a notification that the types of the client would not allow."""
    editor.client.protocol._send_data({"jsonrpc": "2.0", "method": method, "params": params})


async def refusal(editor: Editor, method: str, params: object) -> JsonRpcException:
    with pytest.raises(JsonRpcException) as refused:
        await ask(editor, method, params)
    return refused.value


def inline(editor: Editor, line: int, character: int, **document: object) -> dict[str, object]:
    return {
        "textDocument": {"uri": editor.uri} | document,
        "position": {"line": line, "character": character},
        "context": {"triggerKind": 2},
    }


async def test_a_request_for_an_unknown_document_is_refused(editor: Editor) -> None:
    await editor.initialize({"debounce": False})
    editor.uri = "file:///work/nowhere.py"
    editor.type("a change of what is not open")
    error = await refusal(editor, "textDocument/inlineCompletion", inline(editor, 0, 0))
    assert (error.code, error.message) == (types.ErrorCodes.InvalidParams, "file:///work/nowhere.py is not open")
    await until(lambda: any("is not open" in message.message for message in editor.client.log_messages))
    assert editor.messages == []


async def test_a_position_outside_the_document_is_refused(editor: Editor, daemon: Daemon) -> None:
    daemon.plan(fills=["x"])
    await editor.begin()
    error = await refusal(editor, "textDocument/inlineCompletion", inline(editor, 9, 0))
    assert error.message == "line 10 is outside /work/code.py, which has 2 lines"
    # In LSP, a column past the end of its line means the end of the line.
    answer = await ask(editor, "textDocument/inlineCompletion", inline(editor, 0, 99))
    assert answer.items[0].range.start.character == 8


async def test_a_malformed_request_is_answered(editor: Editor) -> None:
    await editor.begin()
    document = {"uri": editor.uri}
    for params in (
        {"textDocument": document},
        {"textDocument": {}, "position": {"line": 0, "character": 0}},
        {"textDocument": document, "position": {"line": "one", "character": 0}},
    ):
        error = await asyncio.wait_for(refusal(editor, "textDocument/inlineCompletion", params), 20)
        assert error.code in (types.ErrorCodes.InvalidParams, types.ErrorCodes.InternalError)
    assert await editor.suggest() == ["filled"]
    assert editor.messages == []


async def test_a_file_of_five_megabytes_gets_no_suggestions(editor: Editor) -> None:
    await editor.initialize({"debounce": False})
    editor.open("x = 'ä😀'\n" * 400_000 + "value = ¦\n", "big.py")
    assert len(editor.text.encode()) > 5_000_000
    assert await editor.suggest() == []
    for character in "abc":
        editor.type(character)
    assert await editor.suggest(invoked=True) == []
    assert editor.messages == ["Lacuna: no suggestions in /work/big.py: files of more than 2 MiB are not filled"]
    # When the document is small again, it gets suggestions.
    change = types.TextDocumentContentChangeWholeDocument("value = ")
    identifier = types.VersionedTextDocumentIdentifier(99, editor.uri)
    editor.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
    editor.before, editor.after = "value = ", ""
    assert await editor.suggest() == ["filled"]


async def test_invalid_surrogates_in_a_document_are_accepted(editor: Editor, daemon: Daemon) -> None:
    await editor.begin("a = '\ud83d'\nb = '😀'\nc = ¦\n")
    assert await editor.suggest() == ["filled"]
    assert daemon.requests[0]["text"] == "a = '\ufffd'\nb = '😀'\nc = \n"


@pytest.mark.parametrize("argument", [None, {"request": "", "candidate": 2**64}])
async def test_malformed_feedback_is_refused(editor: Editor, argument: object) -> None:
    await editor.initialize({"debounce": False})
    refused = await refusal(editor, "workspace/executeCommand", {"command": "lacuna.accepted", "arguments": [argument]})
    assert refused.code == types.ErrorCodes.InvalidParams
    editor.open("value = ¦\n")
    assert await editor.suggest() == ["filled"]


async def test_messages_outside_the_order_of_lsp_are_refused(editor: Editor) -> None:
    tell(editor, "initialized", {})  # too early: the server ignores it
    for early in ("lacuna/none", "shutdown"):
        assert (await refusal(editor, early, None)).code == types.ErrorCodes.ServerNotInitialized
    await editor.initialize(ready=False)
    assert (await refusal(editor, "initialize", {"capabilities": {}})).code == types.ErrorCodes.InvalidRequest
    await editor.client.shutdown_async(None)
    for late, params in (("workspace/executeCommand", {"command": "lacuna.status"}), ("shutdown", None)):
        assert (await refusal(editor, late, params)).code == types.ErrorCodes.InvalidRequest
    editor.client.error = ConnectionError("shut down")  # so that the fixture does not send another shutdown request


async def test_messages_that_are_not_json_rpc_are_ignored(daemon: Daemon) -> None:
    async with launched(daemon.environment) as editor:
        writer = editor.client.protocol.writer
        for body in (b"{", b"\xff\xfe", b"[]", b"7", json.dumps({"jsonrpc": "1.0", "method": "x"}).encode()):
            writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        await editor.begin()
        assert await editor.suggest() == ["filled"]


async def test_a_client_that_disappears_ends_the_server_and_its_request(daemon: Daemon) -> None:
    daemon.plan(steps=1000, pause=0.02)
    async with launched(daemon.environment) as editor:
        await editor.begin()
        waiting = asyncio.ensure_future(editor.suggest())
        await until(lambda: daemon.requests)
        server = editor.client._server
        assert server is not None
        assert server.stdin is not None
        server.stdin.close()
        assert await asyncio.wait_for(server.wait(), 20) == 1
        await until(lambda: daemon.log[-1]["event"] == "stopped")
        waiting.cancel()
        editor.client.error = ConnectionError("gone")  # so that the fixture does not send a shutdown request


async def test_null_in_a_change_means_what_its_absence_means(editor: Editor) -> None:
    await editor.begin()
    document = {"uri": editor.uri, "version": None}
    whole = {"range": None, "rangeLength": None, "text": "a\nb\nc\nd\n"}
    tell(editor, "textDocument/didChange", {"textDocument": document, "contentChanges": [whole]})
    start, end = {"line": 1, "character": 0}, {"line": 3, "character": 0}
    deleted = {"range": {"start": start, "end": end}, "text": ""}
    tell(editor, "textDocument/didChange", {"textDocument": {"uri": editor.uri}, "contentChanges": [deleted]})
    error = await refusal(editor, "textDocument/inlineCompletion", inline(editor, 3, 0))
    assert error.message == "line 4 is outside /work/code.py, which has 3 lines"
    assert editor.messages == []


async def test_the_user_hears_once_of_changes_that_cannot_be_read(editor: Editor) -> None:
    await editor.begin()
    for _ in range(2):
        params = {"textDocument": {"uri": editor.uri, "version": 2}, "contentChanges": [{"text": 7}, {"range": 1}]}
        tell(editor, "textDocument/didChange", params)
    await refusal(editor, "textDocument/inlineCompletion", inline(editor, 9, 0))
    (said,) = editor.messages
    assert "malformed textDocument/didChange" in said
