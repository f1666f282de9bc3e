"""What the server does with answers of a client that come too late, and with refusals."""

import asyncio
import logging
from concurrent.futures import Future
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcRequestCancelled

from lacuna_lsp.session.server_connection import Server
from lacuna_server.client.client import Address

EDIT = types.ApplyWorkspaceEditParams(types.WorkspaceEdit())


class Sent:
    """The writer of a server: keeps what is sent."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.messages.append(data)


@pytest.fixture
async def server() -> Server:
    async def locate(*arguments: str) -> Address:
        raise AssertionError

    made = Server(locate)
    made.protocol.set_writer(Sent())
    return made


def answer(server: Server, id: str, **body: object) -> None:
    """Handles the client's answer to a request as a connection does."""
    protocol = server.protocol
    protocol.handle_message(protocol.structure_message({"jsonrpc": "2.0", "id": id} | body))


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
