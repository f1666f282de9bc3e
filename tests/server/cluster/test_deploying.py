"""The models of an engine replica, each in a real worker process with the scripted engine."""

import pytest

from lacuna_cluster.deploying import HeldModel, ModelLoadError, Replica
from lacuna_cluster.links import Answered, Ask, Reply
from lacuna_model.core.params import InfillRequest, Region
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import Error

pytestmark = pytest.mark.usefixtures("scripted_engine")


async def answer(held: HeldModel) -> Reply:
    question = Ask("small", Submission(InfillRequest("text", (Region(0, 0, max_tokens=1),)), "s", "d"))
    return [reply async for reply in held.answer(question)][-1]


async def test_several_models_are_held_until_they_are_unloaded() -> None:
    one = Replica(ServerConfig(engine="scripted_engine:load"), ("small", "large"), "r1")
    try:
        small, large = [await one.hold(name) for name in ("small", "large")]
        statuses = one.report().statuses
        assert {name: status.state for name, status in statuses.items()} == {"small": "ready", "large": "ready"}
        with pytest.raises(ModelLoadError, match="no model 'huge' is served here"):
            await one.hold("huge")
        await small.unload()
        assert list(one.report().statuses) == ["large"]
        declined = await answer(small)
        assert isinstance(declined, Error)
        assert declined.code == "shutting_down"
        assert isinstance(await answer(large), Answered)
    finally:
        await one.finish(0.0)
