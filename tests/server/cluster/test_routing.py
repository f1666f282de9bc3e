from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_cluster import fleet
from lacuna_cluster.links import Ask, Loads
from lacuna_model.core.params import InfillRequest, Region
from lacuna_server.wire.frames import Submission


def ask(text: str = "text", session: str = "s", document: str = "d") -> Ask:
    return Ask("", Submission(InfillRequest(text, (Region(0, 0),)), session, document))


def test_a_document_keeps_its_key_while_it_is_typed() -> None:
    assert fleet.key(ask("a")) == fleet.key(ask("b"))
    assert fleet.key(ask()) != fleet.key(ask(document="e"))
    assert fleet.key(ask()) != fleet.key(ask(session="t"))
    assert fleet.key(ask(session="a", document="b")) != fleet.key(ask(session="", document="a\0b"[:1]))


def test_a_text_without_a_name_is_known_by_how_it_begins() -> None:
    begins = "x" * fleet.PREFIX
    assert fleet.key(ask(begins + "1", document="")) == fleet.key(ask(begins + "2", session="t", document=""))
    assert fleet.key(ask("y" + begins, document="")) != fleet.key(ask(begins, document=""))


@given(loads=st.lists(st.integers(0, 50), min_size=1, max_size=9), factor=st.floats(1, 3), least=st.integers(1, 4))
def test_there_is_always_a_replica_below_the_bound(loads: list[int], factor: float, least: int) -> None:
    assert min(loads) < fleet.bound(loads, factor, least)


GONE = -1


class Id(NamedTuple):
    unique_id: str


def replica(name: str, *models: str) -> Any:
    return SimpleNamespace(replica_id=Id(name), multiplexed_model_ids=set(models))


async def chosen(ring: list[Any], loads: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order in which the router tries replicas, where the ring has this order."""
    table = Loads()
    for name, load in loads.items():
        table.reported(name, load)
        if load == GONE:
            table.lost(name)
    monkeypatch.setattr(fleet, "LOADS", table)

    async def by_ring(self: Any, candidates: list[Any], request: Any) -> list[list[Any]]:
        return [[one] for one in ring]

    monkeypatch.setattr(fleet.ConsistentHashRouter, "choose_replicas", by_ring)
    router = object.__new__(fleet.DocumentRouter)
    router._factor, router._at_least = 1.25, 2
    pending = SimpleNamespace(metadata=SimpleNamespace(multiplexed_model_id="m"))
    return [one.replica_id.unique_id for (one,) in await router.choose_replicas(list(ring), pending)]


async def test_the_ring_decides_unless_its_replica_has_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [replica("a", "m"), replica("b", "m"), replica("c", "m")]
    assert await chosen(ring, {}, monkeypatch) == ["a", "b", "c"]
    assert await chosen(ring, {"a": 1}, monkeypatch) == ["a", "b", "c"]
    assert await chosen(ring, {"a": 9}, monkeypatch) == ["b", "c", "a"]
    assert await chosen(ring, {"a": 9, "b": 9}, monkeypatch) == ["c", "a", "b"]
    assert await chosen(ring, {"a": 9, "b": 9, "c": 9}, monkeypatch) == ["a", "b", "c"]


async def test_a_replica_that_was_lost_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = [replica("a", "m"), replica("b"), replica("c", "m")]
    assert await chosen(ring, {"a": GONE}, monkeypatch) == ["c", "b", "a"]
