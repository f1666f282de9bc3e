import asyncio
import contextlib
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest
from tests.server.conftest import Front
from tests.server.live_service import infill, live
from tests.server.scripted.scripted_engine import expected
from websockets.asyncio.client import ClientConnection

from lacuna_server.client.client import Address, Client
from lacuna_server.wire.protocol import Edit, Open, Result, ServiceError

pytestmark = pytest.mark.usefixtures("scripted_engine")
ENDLESS = 100_000


async def fill(client: Client, uri: str = "a", version: int = 1) -> str:
    """Send a request with one region, and return its fill."""
    answers = [answer async for answer in client.infill(infill("", uri, version=version))]
    assert isinstance(answers[-1], Result)
    return answers[-1].result.fills[0]


async def patiently(ask: Callable[[], Awaitable[str]]) -> str:
    """Ask until an attempt at a former address is not under way any more."""
    while True:
        with contextlib.suppress(OSError):
            return await ask()


async def idle(client: Client) -> None:
    async with asyncio.timeout(30):
        while (status := await client.status()).running or status.queued:
            await asyncio.sleep(0.01)


class Breakable(Client):
    """A client whose connection a test breaks."""

    async def greet(self, connection: ClientConnection, address: Address) -> None:
        self._latest = connection
        await super().greet(connection, address)

    def break_connection(self) -> None:
        """Break the connection as a network would."""
        self._latest.transport.abort()


def at(address: str) -> Address:
    return Address(f"http://{address}")


async def test_a_changed_document_is_filled(machine: Front) -> None:
    async with await Client.connect(at(machine.address), name="test") as client:
        before = (await client.status()).documents
        client.open(Open("a", "größe", 1, path="/a.py"))
        client.change("a", [Edit(0, 1, "G")])
        assert await fill(client, version=2) == expected("Größe", 0)
        assert (await client.status()).documents == before + 1
        client.close("a")
        with pytest.raises(ServiceError, match="open"):
            await fill(client, version=2)


async def test_after_a_broken_connection_the_client_sends_its_changes_and_repeats_what_was_running() -> None:
    async with live() as (_, address), await Breakable.connect(at(address)) as client:
        for uri in ("a", "gone", "changed"):
            client.open(Open(uri, "text", 1))
        answer = asyncio.create_task(_first_result(client, steps=20))
        await until_running(client, running=1)
        client.break_connection()
        client.change("changed", [Edit(0, 0, "more ")])  # while there is no connection
        client.close("gone")
        assert await fill(client, "changed", version=2) == expected("more text", 0)
        assert (await client.status()).documents == 2
        assert (await answer).result.fills == (expected("text", 0),)


async def _first_result(client: Client, *, steps: int) -> Result:
    async for answer in client.infill(infill("", "a", steps=steps, step_s=0.02)):
        if isinstance(answer, Result):
            return answer
    raise AssertionError("no result")


async def until_running(client: Client, *, running: int) -> None:
    async with asyncio.timeout(30):
        while (await client.status()).running != running:
            await asyncio.sleep(0.005)


async def test_after_a_refused_change_the_client_opens_the_document_again() -> None:
    async with live(max_held_bytes=400_000) as (_, address), await Client.connect(at(address)) as client:
        async with await Client.connect(at(address)) as other:
            other.open(Open("large", "x" * 48_000))
            await other.status()
            client.open(Open("a", "text", 1))
            client.change("a", [Edit(0, 0, "y" * 25_000)])
            with pytest.raises(ServiceError, match="open it"):
                await fill(client, version=2)
        async with asyncio.timeout(30):
            while not (await client.status()).documents:
                await asyncio.sleep(0.05)
        assert await fill(client, version=2) == expected("y" * 25_000 + "text", 0)


async def test_no_two_texts_of_a_name_have_the_same_version(machine: Front) -> None:
    async with await Client.connect(at(machine.address)) as client:
        versions = []
        for text in ("first", "second"):
            client.open(Open("a", text))
            client.change("a", [Edit(0, 0, "the ")])
            versions.append(client.documents["a"].version)
            answers = [answer async for answer in client.infill(infill("", "a", version=versions[-1]))]
            assert isinstance(answers[-1], Result)
            assert answers[-1].result.fills == (expected(f"the {text}", 0),)
            client.close("a")
        assert len(set(versions)) == 2


async def test_nothing_is_kept_of_documents_that_are_closed() -> None:
    client = Client(Address("http://127.0.0.1:1"))
    tracemalloc.start()
    try:
        for number in range(5_000):
            client.open(Open(f"untitled:{number}", "text"))
            client.close(f"untitled:{number}")
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


async def test_a_client_that_reconnects_serves_again_after_a_long_break() -> None:
    """Requests that waited too long raise the reason; documents, and edits made meanwhile, are there again."""
    addresses = ["127.0.0.1:9"]
    told: list[tuple[str, bool]] = []

    async def locate() -> Address:
        return at(addresses[-1])

    def tell(why: ServiceError | OSError, lately: bool) -> None:
        told.append((str(why), lately))

    client = Client(locate, give_up_s=0.3, reconnects=True, tell=tell)
    client.start()
    async with client:
        client.open(Open("a", "text", 1))
        with pytest.raises(OSError, match="does not answer"):
            await client.status()
        assert told[0] == ("http://127.0.0.1:9 does not answer", False)
        async with live() as (_, address):
            addresses.append(address)
            assert await patiently(lambda: fill(client)) == expected("text", 0)
            told.clear()
        assert [lately for _, lately in told][:1] == [True]
        client.change("a", [Edit(0, 1, "T")])
        with pytest.raises(OSError, match="does not answer"):
            await client.status()
        assert told[-1][1] is False
        async with live() as (_, address):
            addresses.append(address)
            assert await patiently(lambda: fill(client, version=2)) == expected("Text", 0)


async def test_a_wrong_token_is_an_immediate_error() -> None:
    async with live(token="secret") as (_, address):
        for token, said in (("wrong", "does not take the token"), ("", "asks for a token")):
            with pytest.raises(ServiceError, match=said) as caught:
                await Client.connect(Address(f"http://{address}", token))
            assert caught.value.code == "unauthorized"
        async with await Client.connect(Address(f"http://{address}", "secret")) as client:
            await client.status()


async def test_closing_the_client_cancels_its_requests(machine: Front) -> None:
    client = await Client.connect(at(machine.address))
    client.open(Open("a", "text", 1))
    waiting = asyncio.create_task(_first_result(client, steps=ENDLESS))
    await until_running(client, running=1)
    await client.aclose()
    for call in (waiting, client.status()):
        with pytest.raises(ServiceError) as caught:
            await call
        assert caught.value.code == "cancelled"
    with pytest.raises(ServiceError, match="the client has ended"):
        client.open(Open("b", ""))
