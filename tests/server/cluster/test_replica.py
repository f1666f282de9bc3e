"""The models of an engine replica, each in a real worker process with the scripted engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.server.scripted.scripted_engine import expected

from lacuna_cluster.links import Answered, Ask, Declined, Reply, Shown, Told
from lacuna_cluster.replica import HeldModel, ModelLoadError, Replica
from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Submission

pytestmark = pytest.mark.usefixtures("scripted_engine")


@asynccontextmanager
async def replica(engine: str = "load", **config: Any) -> AsyncIterator[Replica]:
    settings = ServerConfig(engine=f"scripted_engine:{engine}", **config)
    one = Replica(settings, ("small", "large"), "r1")
    try:
        yield one
    finally:
        await one.finish(0.0)


def ask(text: str, *, steps: int = 1, step_s: float = 0.0, snapshots: bool = False, document: str = "d") -> Ask:
    options = DecodeOptions(temperature=step_s)
    request = InfillRequest(text, (Region(0, 0, max_tokens=steps),), options=options)
    return Ask("small", Submission(request, "s", document, snapshots=snapshots))


async def replies(held: HeldModel, question: Ask) -> list[Reply]:
    return [reply async for reply in held.answer(question)]


async def test_a_question_is_answered_with_steps_if_it_asks_for_them() -> None:
    async with replica() as one:
        held = await one.hold("small")
        *told, answer = await replies(held, ask("text"))
        assert [reply.waiting.state for reply in told if isinstance(reply, Told)] == ["running"]
        assert isinstance(answer, Answered)
        assert (answer.result.fills, answer.finished.steps) == ((expected("text", 0),), 1)
        heard = await replies(held, ask("text", steps=3, step_s=0.02, snapshots=True))
        assert [reply.snapshot.step for reply in heard if isinstance(reply, Shown)] == [1, 2, 3]


async def test_refusals_and_crashes_are_told() -> None:
    async with replica(max_queued=1, max_active=1, max_queued_per_session=1) as one:
        held = await one.hold("small")
        *_, refused = await replies(held, ask("REFUSE"))
        assert isinstance(refused, Declined)
        assert refused.code == "bad_request"
        running = [
            asyncio.create_task(replies(held, ask("text", steps=99, step_s=0.05, document=str(number))))
            for number in range(2)
        ]
        await asyncio.sleep(0.2)
        (full,) = await replies(held, ask("text", document="third"))
        assert isinstance(full, Declined)
        assert (full.code, full.retry_after_ms > 0) == ("overloaded", True)
        assert one.figures().num_requests == 2
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        *_, crashed = await replies(held, ask("CRASH"))
        assert isinstance(crashed, Declined)
        assert crashed.code == "worker_crashed"
        assert one.figures().statuses["small"].restarts == 1


async def test_several_models_are_held_until_they_are_unloaded() -> None:
    async with replica() as one:
        small, large = [await one.hold(name) for name in ("small", "large")]
        statuses = one.figures().statuses
        assert {name: status.state for name, status in statuses.items()} == {"small": "ready", "large": "ready"}
        await small.unload()
        assert list(one.figures().statuses) == ["large"]
        (declined,) = await replies(small, ask("text"))
        assert isinstance(declined, Declined)
        assert declined.code == "shutting_down"
        assert isinstance((await replies(large, ask("text")))[-1], Answered)
        with pytest.raises(ModelLoadError, match="no model 'other' is served here"):
            await one.hold("other")
