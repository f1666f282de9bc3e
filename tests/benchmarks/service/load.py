"""A load test of the service: many sessions type at the same time, and every request must get its own answer."""

import asyncio
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lacuna_model.core.params import DecodeOptions, Region
from lacuna_server.client.client import Address, Client
from lacuna_server.wire.protocol import Edit, Error, Infill, Open, Result, ServerMessage, ServiceError

# The fill at a byte of a text.
Expected = Callable[[str, int], str]
WARM_UP_S = 20.0
SAMPLE_S = 1.0
GIVE_UP_S = 60.0
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
    """The load: ``sessions`` that type ``keys_per_s`` on average for ``seconds`` and ask for a fill after every key.

    Each document has ``functions`` functions of about 70 tokens. ``max_tokens`` and ``deadline_ms`` are those of each
    request.
    """

    sessions: int = 50
    keys_per_s: float = 5.0
    seconds: float = 60.0
    functions: int = 14
    max_tokens: int = 16
    deadline_ms: int = 5000
    seed: int = 0


class Report(msgspec.Struct, frozen=True):
    """The result of a load test.

    ``outcomes`` counts results by status and refusals by code. ``lost`` counts the requests without an answer,
    ``crossed`` those with another answer than the expected one, ``twice`` those with a second answer. Percentiles, and
    ``longest_ms``, are milliseconds from a request to its result. ``reconnected`` counts broken connections.
    ``memory_bytes`` is the resident memory of all processes of the service, sampled every second; growth in the first
    ``warm_up_s`` is not counted.
    """

    asked: int
    outcomes: dict[str, int]
    lost: int
    crossed: int
    twice: int
    reconnected: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    longest_ms: float
    memory_bytes: tuple[int, ...]
    warm_up_s: float

    @property
    def growth(self) -> float:
        """The relative growth of memory after the warm-up."""
        warm = self.memory_bytes[round(self.warm_up_s / SAMPLE_S) :]
        return max(warm) / warm[0] - 1 if warm and warm[0] else 0.0


async def run(address: Address, load: Load, pids: Sequence[int], expected: Expected | None = None) -> Report:
    """Put a service under load. ``pids`` are the processes whose memory is sampled, together with their children.

    Where it is known what the engine answers, ``expected`` says it.
    """
    typists = [Typist(number, load, expected) for number in range(load.sessions)]
    watching = asyncio.create_task(_watch_memory(pids))
    try:
        await asyncio.gather(*(typist.work(address) for typist in typists))
    finally:
        watching.cancel()
    (samples,) = await asyncio.gather(watching)
    outcomes = sum((typist.outcomes for typist in typists), Counter[str]())
    latencies = [ms for typist in typists for ms in typist.latencies_ms]
    percentiles = statistics.quantiles(latencies, n=100, method="inclusive") if len(latencies) > 1 else [0.0] * 99
    asked = sum(typist.asked for typist in typists)
    return Report(
        asked=asked,
        outcomes=dict(outcomes.most_common()),
        lost=asked - outcomes.total(),
        crossed=sum(typist.crossed for typist in typists),
        twice=sum(typist.twice for typist in typists),
        reconnected=sum(typist.broken for typist in typists),
        p50_ms=percentiles[49],
        p95_ms=percentiles[94],
        p99_ms=percentiles[98],
        longest_ms=max(latencies, default=0.0),
        memory_bytes=tuple(samples),
        warm_up_s=min(WARM_UP_S, load.seconds / 3),
    )


class Attentive(Client):
    """A client that notices a second answer to a request."""

    def __init__(self, locate: Any, **options: Any) -> None:
        super().__init__(locate, **options)
        self.twice = 0
        self._answered: set[str] = set()

    def heard(self, message: ServerMessage) -> None:
        """Pass an answer on, and count it if it is not the first."""
        if isinstance(message, Result | Error) and message.id:
            self.twice += message.id in self._answered
            self._answered.add(message.id)
        super().heard(message)


class Typist:
    """One session: types at its own pace and requests a fill after every key."""

    def __init__(self, number: int, load: Load, expected: Expected | None) -> None:
        self.asked = 0
        self.crossed = 0
        self.twice = 0
        self.broken = 0
        self.outcomes: Counter[str] = Counter()
        self.latencies_ms: list[float] = []
        self._load, self._expected = load, expected
        self._random = random.Random(load.seed + number)
        half = "".join(FUNCTION.format(session=number, number=i) for i in range((load.functions + 1) // 2))
        self._before, self._after = half + "values = [1, 2, 3]\nlimit = 2\n", "\n\n" + half
        self._uri = f"file:///load/session_{number}.py"

    async def work(self, address: Address) -> None:
        """Type until the time is over, then wait for the remaining answers."""
        give_up_s = max(GIVE_UP_S, self._load.seconds)
        async with await Attentive.connect(
            address, name="load", give_up_s=give_up_s, tell=self._count_broken
        ) as client:
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
                    questions.create_task(self._ask(client, self.asked, self._before))
            self.twice = client.twice

    def _count_broken(self, why: ServiceError | OSError, lately: bool) -> None:
        self.broken += 1

    async def _ask(self, client: Client, version: int, before: str) -> None:
        at = len(before.encode())
        region = Region(at, at, max_tokens=self._load.max_tokens, single_line=True)
        options = DecodeOptions(deadline_ms=self._load.deadline_ms)
        began = time.monotonic()
        try:
            async for answer in client.infill(Infill("", self._uri, version, (region,), options=options)):
                if isinstance(answer, Result):
                    self.latencies_ms.append((time.monotonic() - began) * 1e3)
                    self.outcomes[answer.result.status] += 1
                    if self._expected is not None:
                        self.crossed += answer.result.fills != (self._expected(before + self._after, at),)
        except ServiceError as error:
            self.outcomes[error.code] += 1
        except OSError:
            pass  # nobody has answered for as long as the client tries: the request is lost


async def _watch_memory(pids: Sequence[int]) -> list[int]:
    """Sample the resident memory until cancelled, then return the samples in bytes."""
    samples = []
    try:
        while True:
            samples.append(sum(_resident_bytes(process) for pid in pids for process in (pid, *_children(pid))))
            await asyncio.sleep(SAMPLE_S)
    except asyncio.CancelledError:
        return samples


def _children(pid: int) -> list[int]:
    """Return the ids of child processes (Linux; none elsewhere)."""
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()] if file.exists() else []


def _resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes (Linux; 0 elsewhere)."""
    file = Path(f"/proc/{pid}/status")
    lines = file.read_text().splitlines() if file.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
