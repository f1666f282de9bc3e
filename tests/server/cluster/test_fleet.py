"""How an ingress asks the replicas that Ray Serve chooses, with handles that choose as the test says."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from ray import serve

from lacuna_cluster import fleet as module
from lacuna_cluster.fleet import RayFleet
from lacuna_cluster.links import Answered, Ask, Declined, Listener, Reply
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_server.wire.frames import Submission
from lacuna_server.worker.tickets import Finished


class Handle:
    """A handle of Ray Serve whose router always chooses ``where``; ``asked`` has what it was asked with."""

    def __init__(self, where: list[Any]) -> None:
        self.where = where
        self.asked: list[tuple[str, str]] = []

    def options(self, *, session_id: str, multiplexed_model_id: str) -> "Handle":
        self.asked.append((session_id, multiplexed_model_id))
        return self

    @contextlib.asynccontextmanager
    async def choose_replica(self, *, _reserve: bool) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(replica_metadata={"where": self.where})


async def answer(ask: Ask) -> AsyncGenerator[Reply]:
    """A replica that declines texts with "no"."""
    if "no" in ask.submission.request.text:
        yield Declined("overloaded", "full", 5)
    else:
        yield Answered(InfillResult("ok", ("x",), FillStats()), Finished("ok", 0.0))


@pytest.fixture
async def replica() -> AsyncIterator[Handle]:
    listener = Listener(answer)
    port = await listener.open("127.0.0.1")
    yield Handle(["replica", "127.0.0.1", port, listener.secret])
    await listener.close()


@pytest.fixture
def fleet(replica: Handle, monkeypatch: pytest.MonkeyPatch) -> RayFleet:
    monkeypatch.setattr(serve, "get_deployment_handle", lambda name, app: None)
    monkeypatch.setattr(module, "KEPT_S", 60.0)
    return RayFleet({"m": replica, "n": replica}, "app")  # type: ignore[dict-item]


async def asked(fleet: RayFleet, document: str, text: str = "text", model: str = "m") -> Reply:
    request = InfillRequest(text, (Region(0, 0),))
    (reply,) = [reply async for reply in fleet.ask(Ask(model, Submission(request, "s", document)))]
    return reply


async def test_the_router_is_asked_once_for_each_document_and_model(fleet: RayFleet, replica: Handle) -> None:
    for document, model in (("a", "m"), ("a", "m"), ("b", "m"), ("a", "n"), ("a", "m")):
        assert isinstance(await asked(fleet, document, model=model), Answered)
    assert [model for _, model in replica.asked] == ["m", "m", "n"]
    first, second, third = (document for document, _ in replica.asked)
    assert first == third != second


async def test_after_a_refusal_the_router_is_asked_again(fleet: RayFleet, replica: Handle) -> None:
    assert isinstance(await asked(fleet, "a", "no"), Declined)
    assert isinstance(await asked(fleet, "a"), Answered)
    assert len(replica.asked) == 2


async def test_a_choice_holds_for_a_moment_and_few_are_kept(
    fleet: RayFleet, replica: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CHOICES", 3)
    for number in range(10):
        assert isinstance(await asked(fleet, str(number)), Answered)
    assert len(fleet._chosen) <= 3
    monkeypatch.setattr(module, "KEPT_S", 0.0)
    for _ in range(2):
        assert isinstance(await asked(fleet, "new"), Answered)
    assert len(replica.asked) == 12
