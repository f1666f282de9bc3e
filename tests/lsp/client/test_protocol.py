"""What the server does with answers of a client that come too late, and what it keeps of messages."""

import asyncio
import logging

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lacuna_lsp.server import Server
from lacuna_server.client.client import Address

EDIT = types.ApplyWorkspaceEditParams(types.WorkspaceEdit())


class Nowhere:
    """The writer of a server without a client."""

    def write(self, data: bytes) -> None:
        """Drop the data."""


@pytest.fixture
async def server() -> Server:
    async def locate(*arguments: str) -> Address:
        raise AssertionError

    server = Server(locate)
    server.protocol.set_writer(Nowhere())
    return server


def hears(server: Server, **message: object) -> None:
    """Handles a message of the client as a connection does."""
    protocol = server.protocol
    protocol.handle_message(protocol.structure_message({"jsonrpc": "2.0"} | message))


@pytest.mark.parametrize("body", [{"result": {"applied": True}}, {"error": {"code": -32000, "message": "no"}}])
async def test_an_answer_that_nobody_waits_for_is_dropped(
    server: Server, body: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.ensure_future(server.protocol.send_request_async("workspace/applyEdit", EDIT, "1"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    hears(server, id="1", **body)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    second = asyncio.ensure_future(server.protocol.send_request_async("workspace/applyEdit", EDIT, "2"))
    await asyncio.sleep(0)
    hears(server, id="2", result={"applied": True})
    assert (await second).applied


async def test_nothing_is_kept_of_messages_that_are_handled(server: Server) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def changed(params: types.DidChangeConfigurationParams) -> None:
        await asyncio.sleep(0)

    hears(server, id=0, method="initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    event = {"added": [], "removed": []}
    for number in range(3):
        hears(server, method="$/setTrace", params={"value": "off"})
        hears(server, method="workspace/didChangeWorkspaceFolders", params={"event": event})
        hears(server, method="workspace/didChangeConfiguration", params={"settings": {}})
        hears(server, id=number, method="workspace/executeCommand", params={"command": "unknown"})
        refused = asyncio.ensure_future(
            server.protocol.send_request_async("workspace/applyEdit", EDIT, f"own {number}")
        )
        hears(server, id=f"own {number}", error={"code": -32000, "message": "no"})
        with pytest.raises(JsonRpcException):
            await refused
    for _ in range(5):
        await asyncio.sleep(0)
    assert server.protocol._request_futures == {}
    assert server.protocol._result_types == {}
