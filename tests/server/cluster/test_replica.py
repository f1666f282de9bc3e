"""The models of an engine replica, each in a real worker process with the scripted engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lacuna_cluster.links import Answered, Ask, Declined, Reply
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
