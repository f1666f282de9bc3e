"""LSP's base protocol: header variants that clients send, the required order of messages, and input that is not LSP."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from lacuna_lsp.client import opening
from lacuna_lsp.client.opening import HeaderReader, Opened
from lacuna_server.client import starting

INITIALIZE = {"method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}


class Raw:
    """A client that writes raw bytes to the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._id = 0

    def send(self, header: str, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self._writer.write(header.format(len(body)).encode() + body)

    async def ask(self, message: dict[str, Any], header: str = "Content-Length: {}\r\n\r\n") -> dict[str, Any]:
        self._id += 1
        self.send(header, id=self._id, **message)
        while True:
            size = 0
            while (line := await self._reader.readline()).strip():
                if line.startswith(b"Content-Length"):
                    size = int(line.split(b":")[1])
            answer: dict[str, Any] = json.loads(await self._reader.readexactly(size))
            if answer.get("id") == self._id and "method" not in answer:
                return answer


@asynccontextmanager
async def raw(socket: Path) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_unix_connection(socket)
    yield Raw(reader, writer)
    writer.close()
    await writer.wait_closed()


async def test_headers_are_accepted_in_every_form_that_clients_send(language_server: Path) -> None:
    for header in (
        "content-length: {}\r\n\r\n",
        "CONTENT-LENGTH:{}\r\n\r\n",
        "Content-Length \t: \t {} \t\r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        "Content-Length: {}\r\nX-Other: 1\r\n\r\n",
        "Content-Length: {}\n\n",
    ):
        async with raw(language_server) as client:
            answer = await asyncio.wait_for(client.ask(INITIALIZE, header), 60)
        assert "capabilities" in answer["result"]


async def test_messages_outside_the_order_of_lsp_are_refused(language_server: Path) -> None:
    async with raw(language_server) as client:
        client.send("Content-Length: {}\r\n\r\n", method="initialized", params={})  # too early: the server ignores it
        for early in ({"method": "lacuna/none", "params": {}}, {"method": "shutdown"}):
            assert (await client.ask(early))["error"]["code"] == -32002
        assert "result" in await client.ask(INITIALIZE)
        assert (await client.ask(INITIALIZE))["error"]["code"] == -32600
        assert await client.ask({"method": "shutdown"}) == {"jsonrpc": "2.0", "id": 5, "result": None}
        status = {"method": "workspace/executeCommand", "params": {"command": "lacuna.status"}}
        for late in (status, {"method": "shutdown"}, INITIALIZE):
            assert (await client.ask(late))["error"]["code"] == -32600


async def test_an_http_request_of_a_browser_gets_no_answer(language_server: Path) -> None:
    reader, writer = await asyncio.open_unix_connection(language_server)
    body = json.dumps({"jsonrpc": "2.0", "id": 1} | INITIALIZE)
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    assert await asyncio.wait_for(reader.read(), 60) == b""
    writer.close()
    await writer.wait_closed()


async def test_an_overlong_header_line_is_a_connection_error() -> None:
    stream = asyncio.StreamReader(limit=1_000)
    stream.feed_data(b"X" * 5_000)
    with pytest.raises(ConnectionError):
        await HeaderReader(stream).readline()


async def test_a_websocket_client_needs_the_token_of_the_server(token_port: int) -> None:
    url = f"ws://127.0.0.1:{token_port}"
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, additional_headers=headers)
        assert refused.value.response.status_code == 401
    for right in (connect(url, additional_headers={"Authorization": "Bearer s3cret"}), connect(f"{url}/?token=s3cret")):
        await (await right).close()


def message(body: bytes) -> bytes:
    return b"content-length:%d\r\nContent-Type: a\r\n\r\n%s" % (len(body), body)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_every_byte_is_given_again(bodies: list[bytes]) -> None:
    whole = b"".join(map(message, bodies))
    stream = Opened(io.BytesIO(whole))
    assert stream.message == bodies[0]
    again = b""
    for body in bodies:
        again += stream.readline() + stream.readline() + stream.readline() + stream.read(len(body))
    assert again == whole
    assert (stream.readline(), stream.read(5)) == (b"", b"")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The arguments of the services that were started."""
    monkeypatch.delenv("LACUNA_MODEL", raising=False)
    found: list[tuple[str, ...]] = []
    monkeypatch.setattr(starting, "begin", lambda *arguments: found.append(arguments))
    return found


def initialize(**params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, ()),
        ({"model": "qwen2.5-coder-1.5b"}, ("--model", "qwen2.5-coder-1.5b")),
        ({"lacuna": {"threads": 3}}, ("--threads", "3")),
        ({"threads": "many"}, ()),
    ],
)
def test_the_engine_starts_with_the_clients_settings(
    options: object, expected: tuple[str, ...], begun: list[tuple[str, ...]]
) -> None:
    opening.start_engine(initialize(initializationOptions=options, rootUri=None, workspaceFolders=None))
    assert begun == [expected]


def test_parameters_of_another_shape_are_left_to_the_server(begun: list[tuple[str, ...]]) -> None:
    strange: list[Mapping[str, Any]] = [{"rootUri": 5}, {"workspaceFolders": "here"}, {"workspaceFolders": [{}]}]
    for params in strange:
        opening.start_engine(initialize(**params))
    assert not begun
