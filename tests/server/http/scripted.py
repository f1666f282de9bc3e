"""A scheduler that fills every gap with a given text, word by word, and a server that uses it."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from tests.server.live_service import listening

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, SlotView, Snapshot
from lacuna_server.daemon.app import build
from lacuna_server.service.service import Service
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import ServiceError, Status

STATS = FillStats(nfe=5, steps=3, tokens=4, context_tokens=20, cached_tokens=15, ms=50.0, encode_ms=10.0)


def snapshots(text: str) -> Iterator[Snapshot]:
    """Each step commits one more word or newline. The rest of the text is a draft."""
    tokens = re.findall(r"\n|[^\S\n]*[^\s]+", text)
    for step in range(len(tokens) + 1):
        slots = tuple(
            SlotView(token, "committed" if at < step else "draft", 1.0 if at < step else 0.5)
            for at, token in enumerate(tokens)
        )
        yield Snapshot(step + 1, (text,), (slots,), nfe=step + 1, context_tokens=20)


@dataclass
class Script:
    """How the scheduler answers every request."""

    fills: tuple[str, ...] = ("return 1",)
    status: str = "ok"
    stats: FillStats = STATS
    refuse: ServiceError | None = None
    fail: ServiceError | None = None
    hold: asyncio.Event | None = None
    silent: bool = False  # no step before the end
    state: str = "ready"
    positions: int = 0
    retries: int = 0
    asked: list[InfillRequest] = field(default_factory=list)
    tickets: list["ScriptedTicket"] = field(default_factory=list)


class ScriptedTicket:
    def __init__(self, script: Script, submission: Submission) -> None:
        self.submission = submission
        self.cancelled = False
        self.finished = False
        self._script = script

    async def events(self) -> AsyncIterator[Snapshot]:
        if self.submission.snapshots and not self._script.silent:
            for snapshot in snapshots(self._script.fills[0]):
                yield snapshot
                await asyncio.sleep(0)
        if self._script.hold is not None:
            await self._script.hold.wait()

    async def result(self) -> InfillResult:
        script = self._script
        if script.fail is not None:
            raise script.fail
        self.finished = True
        others = tuple((fill,) for fill in script.fills[1 : self.submission.request.candidates])
        return InfillResult(script.status, script.fills[:1], script.stats, alternatives=others)

    def cancel(self) -> None:
        self.cancelled = not self.finished


class ScriptedModel:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.models = ["scripted"]
        self.observers: list[Any] = []

    def submit(self, submission: Submission) -> ScriptedTicket:
        if self.script.refuse is not None:
            raise self.script.refuse
        self.script.asked.append(submission.request)
        self.script.tickets.append(ScriptedTicket(self.script, submission))
        return self.script.tickets[-1]

    def status(self) -> Status:
        return Status("scripted", self.script.state, 0.5, positions=self.script.positions)

    def retry(self) -> None:
        self.script.retries += 1


def application(script: Script, **config: Any) -> Starlette:
    return build(Service(ServerConfig(model="scripted", **config), ScriptedModel(script)))  # type: ignore[arg-type]


@asynccontextmanager
async def serving(script: Script, **config: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Run a real server on a free port, and yield a client for it."""
    server = uvicorn.Server(uvicorn.Config(application(script, **config), port=0, lifespan="off", log_level="error"))
    async with (
        listening(server) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        yield client


async def post(script: Script, path: str, body: object = None, **more: Any) -> httpx2.Response:
    """The answer of a server of its own to one request, whose body is JSON or ``content``."""
    async with serving(script) as client:
        return await client.post(path, json=body, **more)
