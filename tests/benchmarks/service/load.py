"""The command ``serve``: many sessions type at the same time, and every request must get an answer or a refusal."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from tests.benchmarks.figures import Row, percentile, show
from tests.benchmarks.service import own

from lacuna_model.commands.program import JsonOption
from lacuna_model.core.params import DecodeOptions, Region
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_server.client import lifecycle
from lacuna_server.client.client import Address, Client
from lacuna_server.wire.protocol import Edit, Infill, Open, Result, ServiceError
from training.options import ModelOption, ThreadsOption

FAILED = 1
WARM_UP_S = 20.0
SAMPLE_S = 1.0
GIVE_UP_S = 60.0
# Functions of a document, of about 70 tokens each; the tokens and the milliseconds that a request has.
FUNCTIONS, MAX_TOKENS, DEADLINE_MS = 14, 16, 5000
FUNCTION = '''def step_{session}_{number}(values, limit={number}):
    """Add up what lies under the limit, for session {session}."""
    total = 0
    for value in values:
        if value < limit:
            total += value * {number}
    return total


'''
TYPED = "total = sum(values) / len(values)\nresult = [value for value in values if value > limit]\nprint(result)\n"


class Load(msgspec.Struct, frozen=True):
    """The load: ``sessions`` that type ``keys_per_s`` on average for ``seconds`` and ask for a fill after every key."""

    sessions: int
    seconds: float
    keys_per_s: float = 5.0


class Report(msgspec.Struct, frozen=True):
    """The result of a load test.

    ``outcomes`` counts results by status and refusals by code; the other requests had no answer. ``latencies_ms`` are
    the milliseconds from each request to its result. ``memory_bytes`` is the resident memory of all processes of the
    service, sampled every second; its growth in the first ``warm_up_s`` is not counted.
    """

    asked: int
    outcomes: Counter[str]
    latencies_ms: list[float]
    memory_bytes: list[int]
    warm_up_s: float

    @property
    def lost(self) -> int:
        """The requests without an answer."""
        return self.asked - self.outcomes.total()

    @property
    def growth(self) -> float:
        """The relative growth of memory after the warm-up."""
        warm = self.memory_bytes[round(self.warm_up_s / SAMPLE_S) :]
        return max(warm) / warm[0] - 1 if warm and warm[0] else 0.0

    @property
    def row(self) -> Row:
        """The figures."""
        return {
            "requests": self.asked,
            **self.outcomes,
            "lost": self.lost,
            **{f"ms p{share}": percentile(self.latencies_ms, share) for share in (50, 95, 99, 100)},
            "memory MB": max(self.memory_bytes, default=0) / 1e6,
            "growth %": 100 * self.growth,
        }


async def run(address: Address, load: Load, pids: Sequence[int]) -> Report:
    """Puts a service under load. ``pids`` are the processes whose memory is sampled, together with their children."""
    typists = [Typist(number, load) for number in range(load.sessions)]
    samples: list[int] = []
    watching = asyncio.create_task(_watch_memory(pids, samples))
    try:
        await asyncio.gather(*(typist.work(address) for typist in typists))
    finally:
        watching.cancel()
    return Report(
        asked=sum(typist.asked for typist in typists),
        outcomes=sum((typist.outcomes for typist in typists), Counter[str]()),
        latencies_ms=[ms for typist in typists for ms in typist.latencies_ms],
        memory_bytes=samples,
        warm_up_s=min(WARM_UP_S, load.seconds / 3),
    )


class Typist:
    """One session: types at its own pace and requests a fill after every key."""

    def __init__(self, number: int, load: Load) -> None:
        self.asked = 0
        self.outcomes: Counter[str] = Counter()
        self.latencies_ms: list[float] = []
        self._load = load
        self._random = random.Random(number)
        half = "".join(FUNCTION.format(session=number, number=i) for i in range(FUNCTIONS // 2))
        self._before, self._after = half + "values = [1, 2, 3]\nlimit = 2\n", "\n\n" + half
        self._uri = f"file:///load/session_{number}.py"

    async def work(self, address: Address) -> None:
        """Types until the time is over, then waits for the remaining answers."""
        give_up_s = max(GIVE_UP_S, self._load.seconds)
        async with await Client.connect(address, name="load", give_up_s=give_up_s) as client:
            client.open(Open(self._uri, self._before + self._after, 0))
            end = time.monotonic() + self._load.seconds
            async with asyncio.TaskGroup() as questions:
                while time.monotonic() < end:
                    await asyncio.sleep(self._random.expovariate(self._load.keys_per_s))
                    key = TYPED[self.asked % len(TYPED)]
                    self.asked += 1
                    at = len(self._before.encode())
                    self._before += key
                    client.change(self._uri, [Edit(at, at, key)])
                    questions.create_task(self._ask(client, self.asked, at + len(key.encode())))

    async def _ask(self, client: Client, version: int, at: int) -> None:
        region = Region(at, at, max_tokens=MAX_TOKENS, single_line=True)
        options = DecodeOptions(deadline_ms=DEADLINE_MS)
        began = time.monotonic()
        try:
            async for answer in client.infill(Infill("", self._uri, version, (region,), options=options)):
                if isinstance(answer, Result):
                    self.latencies_ms.append((time.monotonic() - began) * 1e3)
                    self.outcomes[answer.result.status] += 1
        except ServiceError as error:
            self.outcomes[error.code] += 1
        except OSError:
            pass  # nobody has answered for as long as the client tries: the request is lost


async def _watch_memory(pids: Sequence[int], samples: list[int]) -> None:
    """Samples the resident memory in bytes until it is cancelled (Linux; 0 elsewhere)."""
    while True:
        samples.append(sum(_resident_bytes(process) for pid in pids for process in (pid, *_children(pid))))
        await asyncio.sleep(SAMPLE_S)


def _children(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()] if file.exists() else []


def _resident_bytes(pid: int) -> int:
    file = Path(f"/proc/{pid}/status")
    lines = file.read_text().splitlines() if file.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def serve(
    sessions: Annotated[int, typer.Option(min=1, help="Run this many sessions at the same time.")] = 50,
    seconds: Annotated[float, typer.Option(min=1.0, help="Type for this many seconds.")] = 60.0,
    threads: ThreadsOption = 0,
    json_output: JsonOption = False,
    model: ModelOption = DEFAULT_MODEL,
) -> None:
    """Load a new service with many typing sessions, and check that every request gets an answer or a refusal."""
    load = Load(sessions, seconds)

    async def loaded() -> Report:
        async with own.service(model, "--threads", str(threads)) as address:
            running = lifecycle.find()
            assert running is not None
            async with await Client.connect(address) as client:
                while (await client.status()).state == "loading":
                    await asyncio.sleep(0.1)
            return await run(address, load, [running.pid])

    with own.runtime_folder():
        report = asyncio.run(loaded())
    show([report.row], json_output)
    if report.lost:
        raise typer.Exit(FAILED)
