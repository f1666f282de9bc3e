"""How an ingress asks the replicas that Ray Serve chooses, with handles that choose as the test says."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import serve

from lacuna_cluster import fleet as module
from lacuna_cluster.fleet import RayFleet
from lacuna_cluster.links import Answered, Ask, Listener, Loads, Reply
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import Error
from lacuna_server.worker.scheduler import Finished


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
        yield Error("overloaded", "full")
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


def ask(text: str = "text", session: str = "s", document: str = "d", model: str = "m") -> Ask:
    return Ask(model, Submission(InfillRequest(text, (Region(0, 0),)), session, document))


async def asked(fleet: RayFleet, document: str, text: str = "text", model: str = "m") -> type[Reply]:
    (reply,) = [reply async for reply in fleet.ask(ask(text, document=document, model=model))]
    return type(reply)


async def test_the_router_is_asked_once_for_each_document_and_model_and_after_a_refusal(
    fleet: RayFleet, replica: Handle
) -> None:
    for document, model in (("a", "m"), ("a", "m"), ("b", "m"), ("a", "n"), ("a", "m")):
        assert await asked(fleet, document, model=model) is Answered
    assert [model for _, model in replica.asked] == ["m", "m", "n"]
    first, second, third = (document for document, _ in replica.asked)
    assert first == third != second
    assert await asked(fleet, "b", "no") is Error
    assert await asked(fleet, "b") is Answered
    assert len(replica.asked) == 4


async def test_a_choice_holds_for_a_moment_and_few_are_kept(
    fleet: RayFleet, replica: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CHOICES", 3)
    for number in range(10):
        assert await asked(fleet, str(number)) is Answered
    assert len(fleet._chosen) <= 3
    monkeypatch.setattr(module, "KEPT_S", 0.0)
    for _ in range(2):
        assert await asked(fleet, "new") is Answered
    assert len(replica.asked) == 12


def test_a_document_keeps_its_key_while_it_is_typed() -> None:
    assert module.key(ask("a")) == module.key(ask("b"))
    assert module.key(ask()) != module.key(ask(document="e"))
    assert module.key(ask()) != module.key(ask(session="t"))
    begins = "x" * module.PREFIX  # without a name it is known by how it begins
    assert module.key(ask(begins + "1", document="")) == module.key(ask(begins + "2", session="t", document=""))
    assert module.key(ask("y" + begins, document="")) != module.key(ask(begins, document=""))


@given(loads=st.lists(st.integers(0, 50), min_size=1, max_size=9), factor=st.floats(1, 3), least=st.integers(1, 4))
def test_there_is_always_a_replica_below_the_bound(loads: list[int], factor: float, least: int) -> None:
    assert min(loads) < module.bound(loads, factor, least)


GONE = -1


class Id(NamedTuple):
    unique_id: str


def router_replica(name: str, *models: str) -> Any:
    return SimpleNamespace(replica_id=Id(name), multiplexed_model_ids=set(models))


async def chosen(ring: list[Any], loads: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order in which the router tries replicas, where the ring has this order."""
    table = Loads()
    for name, load in loads.items():
        table.reported(name, load)
        if load == GONE:
            table.lost(name)
    monkeypatch.setattr(module, "LOADS", table)

    async def by_ring(self: Any, candidates: list[Any], request: Any) -> list[list[Any]]:
        return [[one] for one in ring]

    monkeypatch.setattr(module.ConsistentHashRouter, "choose_replicas", by_ring)
    router = object.__new__(module.DocumentRouter)
    router._factor, router._at_least = 1.25, 2
    pending = SimpleNamespace(metadata=SimpleNamespace(multiplexed_model_id="m"))
    return [one.replica_id.unique_id for (one,) in await router.choose_replicas(list(ring), pending)]


async def test_the_ring_decides_unless_its_replica_has_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [router_replica(name, "m") for name in "abc"]
    assert await chosen(ring, {}, monkeypatch) == ["a", "b", "c"]
    assert await chosen(ring, {"a": 1}, monkeypatch) == ["a", "b", "c"]
    assert await chosen(ring, {"a": 9}, monkeypatch) == ["b", "c", "a"]
    assert await chosen(ring, {"a": 9, "b": 9}, monkeypatch) == ["c", "a", "b"]
    assert await chosen(ring, {"a": 9, "b": 9, "c": 9}, monkeypatch) == ["a", "b", "c"]


async def test_a_replica_that_was_lost_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [router_replica("a", "m"), router_replica("b"), router_replica("c", "m")]
    assert await chosen(ring, {"a": GONE}, monkeypatch) == ["c", "b", "a"]
