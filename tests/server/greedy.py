"""Measures a service's memory while many sessions use as much of it as they can.

Run it with ``python -m tests.server.greedy [SESSIONS]``. Each session opens documents of 2 MB until the service refuses
one. It requests fills without reading the answers, and begins a message that it never completes. Meanwhile this user's
own client, which sends the token, also requests fills.
"""

import asyncio
import contextlib
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol

from lacuna_model.core.params import Region
from lacuna_server.client import lifecycle
from lacuna_server.client.client import Address, Client
from lacuna_server.wire import protocol
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import ClientMessage, Hello, Infill, Open, Result

from .live_service import infill

TEXT = "x" * ServerConfig().max_document_bytes
GREED_S = 90.0
SAMPLE_S = 0.2
MB = 1024 * 1024


async def be_greedy(address: Address, until: float, half_sent: bytes) -> None:
    """Open one session after the other. Each one uses as much memory of the service as it can."""
    url = address.url.replace("http", "ws") + "/v1/ws"
    while time.monotonic() < until:
        with contextlib.suppress(ConnectionClosed, InvalidHandshake, OSError, TimeoutError):
            async with connect(
                url, subprotocols=[Subprotocol(protocol.MSGPACK)], proxy=None, max_queue=1, open_timeout=GREED_S
            ) as connection:

                async def send(message: ClientMessage, to=connection) -> None:  # type: ignore[no-untyped-def]
                    await to.send(protocol.encode(message, protocol.MSGPACK))

                await send(Hello("greedy"))
                for number in range(4):
                    await send(Open(str(number), TEXT, 1))
                    await send(infill(str(number), str(number)))
                connection.transport.write(half_sent)
                await asyncio.sleep(max(0.0, until - time.monotonic()))
        await asyncio.sleep(1.0)


async def all_be_greedy(address: Address, sessions: int) -> None:
    half_sent = Frame(Opcode.BINARY, bytes(16 * MB - 1)).serialize(mask=True)[: 2 * MB]
    until = time.monotonic() + GREED_S
    await asyncio.gather(*(be_greedy(address, until, half_sent) for _ in range(sessions)))


async def measure_own_fills(address: Address, until: float) -> list[float]:
    """Request fills as this user's own client. Returns the duration of each one in seconds."""
    took = []
    async with await Client.connect(address) as client:
        client.open(Open("own", "y" * 100_000, 1))
        while time.monotonic() < until:
            began = time.monotonic()
            answers = [answer async for answer in client.infill(Infill("", "own", 1, (Region(0, 0, max_tokens=1),)))]
            assert isinstance(answers[-1], Result)
            took.append(time.monotonic() - began)
            await asyncio.sleep(0.2)
    return took


async def watch(pid: int, until: float) -> list[int]:
    """Sample the resident memory of the service's own process, in bytes."""
    samples = []
    while time.monotonic() < until:
        samples.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize())
        await asyncio.sleep(SAMPLE_S)
    return samples


async def measure(running: lifecycle.Running, sessions: int) -> None:
    own = Address.of(running)
    async with await Client.connect(own) as client:
        while (await client.status()).state != "ready":
            await asyncio.sleep(0.1)
    (before,) = await watch(running.pid, time.monotonic() + SAMPLE_S / 2)
    until = time.monotonic() + GREED_S
    greedy = multiprocessing.get_context("fork").Process(target=start_greedy, args=(running.url, sessions))
    greedy.start()
    samples, took = await asyncio.gather(watch(running.pid, until), measure_own_fills(own, until))
    await asyncio.to_thread(greedy.join)
    quantiles = statistics.quantiles(took, n=20)
    print(f"{sessions} greedy sessions, {GREED_S:.0f} s: the service had {before / MB:.0f} MB before")
    print("MB every 10 s:", *(sample // MB for sample in samples[:: round(10 / SAMPLE_S)]))
    print(f"and at most {max(samples) / MB:.0f} MB, median {statistics.median(samples) / MB:.0f} MB")
    print(f"{len(took)} own fills: p50 {statistics.median(took):.3f} s, p95 {quantiles[18]:.3f} s, none refused")


def start_greedy(url: str, sessions: int) -> None:
    asyncio.run(all_be_greedy(Address(url), sessions))


@contextlib.contextmanager
def serving() -> Iterator[lifecycle.Running]:
    """Run a service with the scripted engine, as this user's own."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_RUNTIME_DIR": folder, "PYTHONPATH": str(Path(__file__).parent / "scripted")}
        config = Path(folder, "lacuna.toml")
        config.write_text('engine = "scripted_engine:load"\nport = 0\n')
        command = [sys.executable, "-m", "lacuna_server", "serve", "--config", str(config)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            while (running := lifecycle.find()) is None:
                time.sleep(0.05)
            try:
                yield running
            finally:
                process.terminate()


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    with serving() as running:
        asyncio.run(measure(running, sessions))


if __name__ == "__main__":
    main()
