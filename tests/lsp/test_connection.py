import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from lsprotocol import types

from lacuna_lsp.client.client_session import ClientSession
from lacuna_lsp.connection import ClientWorkspaces, ServiceConnection
from lacuna_lsp.document import ClientDocument
from lacuna_model.core.params import InfillResult, Region, Snippet
from lacuna_server.client.client import Address
from lacuna_server.wire.protocol import ServiceError

from .service import Daemon


async def test_sending_a_token_unencrypted_gives_a_warning() -> None:
    warned: list[str] = []

    async def far() -> Address:
        return Address("http://gpu.example:1", "secret")

    await ServiceConnection(far, ClientSession(warned.append), lambda news: None)._located()
    assert "http://gpu.example:1 unencrypted" in warned[0]
    assert "https://" in warned[0]
    assert "secret" not in warned[0]


@asynccontextmanager
async def choosing(
    daemon: Daemon, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[ServiceConnection, ClientDocument, asyncio.Task[InfillResult], asyncio.Event]]:
    """A fill at the end of a document, for which snippets are being chosen until the event is set."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def choose(*arguments: object) -> tuple[Snippet, ...]:
        begun.set()
        await goes_on.wait()
        return ()

    async def without_token(*arguments: str) -> Address:
        return Address(daemon.running.url, "")

    monkeypatch.setattr(ClientWorkspaces, "choose", choose)
    session = ClientSession(print)
    session.folders = [str(folder)]
    document = ClientDocument((folder / "code.py").as_uri(), "é = 1\nb = ", 1, "python", "utf-16")
    connection = ServiceConnection(without_token, session, lambda news: None)
    running = asyncio.create_task(connection.run())
    await connection.becomes_ready()
    connection.open(document)
    filling = asyncio.ensure_future(connection.infill(document, [Region(document.size, document.size)]))
    await begun.wait()
    yield connection, document, filling, goes_on
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize("line", [0, 1])
async def test_a_key_while_snippets_are_chosen_leaves_a_fill_of_the_text_that_was_asked_about(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    async with choosing(daemon, tmp_path, monkeypatch) as (connection, document, filling, goes_on):
        place = types.Position(line, 4)
        change = types.TextDocumentContentChangePartial(types.Range(place, place), "ü")
        connection.change(document, document.apply([change], 2))
        goes_on.set()
        assert (await filling).fills == ("filled",)
    assert [request["text"] for request in daemon.requests] == ["é = 1\nb = "]


async def test_closing_a_document_while_snippets_are_chosen_ends_its_fill(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with choosing(daemon, tmp_path, monkeypatch) as (connection, document, filling, goes_on):
        connection.close(document)
        goes_on.set()
        with pytest.raises(ServiceError, match="closed"):
            await filling
