"""What the server does with answers of a client that come too late, and with refusals; what it keeps of messages."""

import asyncio
import gc
import logging
import weakref
from concurrent.futures import Future
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcRequestCancelled

from lacuna_lsp.server import Server
from lacuna_server.client.client import Address

EDIT = types.ApplyWorkspaceEditParams(types.WorkspaceEdit())


class Sent:
    """The writer of a server: keeps what is sent."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.messages.append(data)


def made() -> Server:
    async def locate(*arguments: str) -> Address:
        raise AssertionError

    server = Server(locate)
    server.protocol.set_writer(Sent())
    return server


@pytest.fixture
async def server() -> Server:
    return made()


def hears(server: Server, **message: object) -> None:
    """Handles a message of the client as a connection does."""
    protocol = server.protocol
    protocol.handle_message(protocol.structure_message({"jsonrpc": "2.0"} | message))


def answer(server: Server, id: str, **body: object) -> None:
    """Handles the client's answer to a request."""
    hears(server, id=id, **body)


def initialize(server: Server) -> None:
    hears(server, id=0, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})


@pytest.mark.parametrize("body", [{"result": {"applied": True}}, {"error": {"code": -32000, "message": "no"}}])
async def test_an_answer_that_nobody_waits_for_is_dropped(
    server: Server, body: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.ensure_future(server.protocol.send_request_async("workspace/applyEdit", EDIT, "1"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    answer(server, "1", **body)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    second = asyncio.ensure_future(server.protocol.send_request_async("workspace/applyEdit", EDIT, "2"))
    await asyncio.sleep(0)
    answer(server, "2", result={"applied": True})
    assert (await second).applied


@pytest.mark.parametrize(
    ("error", "traced"),
    [
        (JsonRpcException("a.py is not open", types.ErrorCodes.InvalidParams), False),
        (JsonRpcRequestCancelled(), False),
        (JsonRpcInternalError("a fault"), True),
        (ZeroDivisionError("a fault"), True),
    ],
    ids=["refusal", "cancelled", "internal error", "fault"],
)
async def test_a_refusal_is_one_line_of_the_log_and_a_fault_has_its_traceback(
    server: Server, error: Exception, traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    failed: Future[Any] = Future()
    failed.set_exception(error)
    with caplog.at_level(logging.INFO):
        server.protocol._send_handler_result(failed, msg_id="1")
    (record,) = [record for record in caplog.records if not record.getMessage().startswith("Sending data")]
    assert (record.exc_info is not None, record.levelno >= logging.ERROR) == (traced, traced)
    assert traced or "\n" not in record.getMessage()
    writer = server.protocol.writer
    assert isinstance(writer, Sent)
    assert any(b'"error"' in message for message in writer.messages)


async def test_nothing_is_kept_of_messages_that_are_handled(server: Server) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def changed(params: types.DidChangeConfigurationParams) -> None:
        await asyncio.sleep(0)

    initialize(server)
    event = {"added": [], "removed": []}
    for number in range(3):
        hears(server, method="$/setTrace", params={"value": "off"})
        hears(server, method="workspace/didChangeWorkspaceFolders", params={"event": event})
        hears(server, method="workspace/didChangeConfiguration", params={"settings": {}})
        hears(server, id=number, method="workspace/executeCommand", params={"command": "unknown"})
        refused = asyncio.ensure_future(
            server.protocol.send_request_async("workspace/applyEdit", EDIT, f"own {number}")
        )
        answer(server, f"own {number}", error={"code": -32000, "message": "no"})
        with pytest.raises(JsonRpcException):
            await refused
    for _ in range(5):
        await asyncio.sleep(0)
    assert server.protocol._request_futures == {}
    assert server.protocol._result_types == {}


async def test_nothing_is_kept_of_a_client_that_has_gone() -> None:
    gone = list[weakref.ref[Server]]()
    for _ in range(3):
        server = made()
        initialize(server)
        asking = asyncio.ensure_future(server.protocol.send_request_async("workspace/applyEdit", EDIT, "1"))
        answer(server, "1", result={"applied": True})
        await asking
        gone.append(weakref.ref(server))
        del server, asking
    await asyncio.sleep(0)
    gc.collect()
    assert [one() for one in gone] == [None] * 3
