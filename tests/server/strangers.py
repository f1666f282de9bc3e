"""Measures how long this user's own editor waits for fills while strangers do what they can without the token.

Run it with ``python -m tests.server.strangers [SESSIONS [SOCKETS [SECONDS]]]``. A client that sends the token types:
an edit, and a request of 80 ms. It does so for a while alone, and then while another process holds sessions that
request fills, opens connections on which it says nothing, and sends the messages that take longest to read: changes
with hundreds of thousands of edits, MessagePack that is no message, and HTTP bodies full of unknown fields.
"""

import asyncio
import contextlib
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from lacuna_server.client.client import Address, Client
from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import Change, ClientMessage, Edit, Hello, Open

from .conftest import services
from .live_service import fill, infill

TEXT = "x = 1\n" * 3_000
CROWD = "crowd"
STEPS, STEP_S, PAUSE_S = 4, 0.02, 0.1
AGAIN_S = 2.0  # as refusals tell clients
FAULTS = (ConnectionClosed, InvalidHandshake, OSError, TimeoutError, asyncio.IncompleteReadError)


class Crowd(NamedTuple):
    """How many sessions strangers hold, how many silent connections, and how many edits a large message has."""

    sessions: int
    sockets: int
    edits: int = 300_000


async def type_on(own: Address, seconds: float) -> list[float]:
    """Type as this user's own editor. Returns the seconds from each edit to its fill; each is answered."""
    took = []
    until = time.monotonic() + seconds
    async with await Client.connect(own) as client:
        client.open(Open("own", TEXT, 1))
        for version in itertools.count(2):
            if time.monotonic() > until:
                return took
            began = time.monotonic()
            client.change("own", [Edit(0, 0, "y")])
            await fill(client, "own", version=version, steps=STEPS, step_s=STEP_S, at=(1,))
            took.append(time.monotonic() - began)
            await asyncio.sleep(PAUSE_S)
    raise AssertionError


async def hold_session(url: str) -> None:
    """Hold a session without the token, and request fills in it."""
    async with connected(url) as connection:
        await send(connection, Hello("stranger"), Open("a", "text", 1))
        for number in itertools.count():
            await send(connection, infill(str(number), "a", steps=STEPS, step_s=STEP_S))
            async with asyncio.timeout(5):
                with contextlib.suppress(TimeoutError):
                    await connection.recv()
            await asyncio.sleep(5)


async def hold_socket(url: str) -> None:
    """Connect, and say nothing until the service closes the connection."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    try:
        await reader.read()
    finally:
        writer.close()


async def send_frame(url: str, frame: bytes) -> None:
    """Send a long frame, a change with far too many edits or no message: it is read before it is refused."""
    async with connected(url) as connection:
        await send(connection, Hello("stranger"), Open("a", TEXT, 1))
        await connection.send(frame)
        await send(connection, infill("1", "a", version=2))
        await connection.recv()
        await connection.recv()


async def send_body(url: str, body: bytes) -> None:
    """Post a body of which hardly anything is needed."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    try:
        writer.write(b"POST /infill HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()


def connected(url: str) -> connect:
    """A websocket without the token."""
    return connect(f"ws{url.removeprefix('http')}/v1/ws", subprotocols=[Subprotocol(protocol.MSGPACK)], proxy=None)


async def send(connection: object, *messages: ClientMessage) -> None:
    for message in messages:
        await connection.send(protocol.encode(message, protocol.MSGPACK))  # type: ignore[attr-defined]


async def again_and_again(act: Callable[[], Awaitable[None]]) -> None:
    while True:
        with contextlib.suppress(*FAULTS):
            await act()
        await asyncio.sleep(AGAIN_S)


async def crowd(url: str, how: Crowd, seconds: float) -> None:
    """Do all of it at once, for so many seconds."""
    change = protocol.encode(
        Change("a", 2, tuple(Edit(n % 9_000, n % 9_000, "") for n in range(how.edits))), protocol.MSGPACK
    )
    assert isinstance(change, bytes)
    no_message = b"\x81\xa1x\xdd" + (50 * how.edits).to_bytes(4, "big") + b"\x90" * (50 * how.edits)
    body = b'{"input_prefix":"","input_suffix":"","n_predict":1,"x":[' + b"[]," * (16 * how.edits) + b"1]}"
    acts: list[Callable[[], Awaitable[None]]] = [
        lambda: send_frame(url, change),
        lambda: send_frame(url, no_message),
    ]
    acts += [lambda: send_body(url, body)] * 3
    acts += [lambda: hold_session(url)] * how.sessions
    acts += [lambda: hold_socket(url)] * how.sockets
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*map(again_and_again, acts))


@contextlib.contextmanager
def crowded(url: str, how: Crowd, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """Have the crowd in another process, which ends with the block, or after so many seconds."""
    command = [sys.executable, "-m", "tests.server.strangers", CROWD, url, *map(str, how), str(seconds)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as process:
        try:
            yield process
        finally:
            process.terminate()


async def measure(own: Address, how: Crowd, seconds: float) -> tuple[list[float], list[float]]:
    """Return the times of fills without strangers, and among them."""
    async with await Client.connect(own) as client:
        while (await client.status()).state != "ready":
            await asyncio.sleep(0.1)
    calm = await type_on(own, seconds)
    with crowded(own.url, how, 3 * seconds):
        await asyncio.sleep(seconds / 2)
        return calm, await type_on(own, seconds)


def described(took: Sequence[float]) -> str:
    """Median and 95th percentile in milliseconds."""
    return f"p50 {1e3 * statistics.median(took):.0f} ms, p95 {1e3 * statistics.quantiles(took, n=20)[18]:.0f} ms"


def main() -> None:
    """Measure, and print the figures."""
    if sys.argv[1:2] == [CROWD]:
        os.nice(19)  # it stands for other machines: what is measured is the service, not the processors it takes
        url, *numbers, seconds = sys.argv[2:]
        return asyncio.run(crowd(url, Crowd(*map(int, numbers)), float(seconds)))
    sessions, sockets, duration = (*map(int, sys.argv[1:]), *(1024, 1100, 30)[len(sys.argv) - 1 :])
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory() as folder, services(Path(folder)) as serve:
        calm, among = asyncio.run(measure(serve("load"), Crowd(sessions, sockets), duration))
    print(f"alone: {len(calm)} fills, {described(calm)}")
    print(f"among {sessions} sessions, {sockets} silent connections: {len(among)} fills, {described(among)}")


if __name__ == "__main__":
    main()
