"""How an ingress asks the replicas that Ray Serve chooses, with handles that choose as the test says."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from ray import serve

from lacuna_cluster import fleet as module
from lacuna_cluster import links
from lacuna_cluster.fleet import Choices, RayFleet
from lacuna_cluster.links import Answered, Ask, Declined, Listener, Loads, ReplicaAddress, Reply
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_server.wire.frames import Submission


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
        yield Declined(ask.id, "overloaded", "full", 5)
    else:
        yield Answered(ask.id, InfillResult("ok", ("x",), FillStats()), 0.0, 0.0, 1)


@pytest.fixture
async def replica() -> AsyncIterator[Handle]:
    listener = Listener(answer)
    port = await listener.open("127.0.0.1")
    yield Handle(["replica", "127.0.0.1", port, listener.secret])
    await listener.close()


@pytest.fixture
def fleet(replica: Handle, monkeypatch: pytest.MonkeyPatch) -> RayFleet:
    monkeypatch.setattr(serve, "get_deployment_handle", lambda name, app: None)
    return RayFleet({"m": replica, "n": replica}, "app", kept_s=60.0)  # type: ignore[dict-item]


async def asked(fleet: RayFleet, document: str, text: str = "text", model: str = "m") -> Reply:
    request = InfillRequest(text, (Region(0, 0),))
    (reply,) = [reply async for reply in fleet.ask(Ask(1, model, Submission(request, "s", document)))]
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


HELD = ReplicaAddress("r", "127.0.0.1", 1, "secret")


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(links, "time", clock)
    monkeypatch.setattr(module, "LOADS", Loads())
    return clock


def test_a_choice_holds_for_a_moment_unless_its_replica_is_lost_and_few_are_kept(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = Choices(1.0)
    assert chosen.known("a") is None
    chosen.keep("a", HELD)
    clock.now += 0.99
    assert chosen.known("a") == HELD
    assert chosen.known("b") is None
    module.LOADS.lost("r")
    assert chosen.known("a") is None
    module.LOADS.found("r")
    assert chosen.known("a") == HELD
    clock.now += 0.01
    assert chosen.known("a") is None
    monkeypatch.setattr(module, "MAX_CHOICES", 3)
    for document in range(10):
        chosen.keep(document, HELD)
        assert chosen.known(document) == HELD
    assert sum(chosen.known(document) is not None for document in range(10)) <= 3
