import pytest

from lacuna_server.cluster.ingress import choices, loads
from lacuna_server.cluster.ingress.choices import Choices
from lacuna_server.cluster.ingress.links import ReplicaAddress
from lacuna_server.cluster.ingress.loads import Loads

REPLICA = ReplicaAddress("r", "127.0.0.1", 1, "secret")


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(choices, "time", clock)
    monkeypatch.setattr(loads, "time", clock)
    monkeypatch.setattr(choices, "LOADS", Loads())
    return clock


def test_a_choice_holds_for_a_moment(clock: Clock) -> None:
    chosen = Choices(1.0)
    assert chosen.known("a") is None
    chosen.keep("a", REPLICA)
    clock.now += 0.99
    assert chosen.known("a") == REPLICA
    assert chosen.known("b") is None
    clock.now += 0.01
    assert chosen.known("a") is None


def test_a_router_that_wants_to_be_asked_each_time_is(clock: Clock) -> None:
    chosen = Choices(0.0)
    chosen.keep("a", REPLICA)
    assert chosen.known("a") is None


def test_a_lost_replica_has_to_be_chosen_again(clock: Clock) -> None:
    chosen = Choices(1.0)
    chosen.keep("a", REPLICA)
    choices.LOADS.lost("r")
    assert chosen.known("a") is None
    choices.LOADS.found("r")
    assert chosen.known("a") == REPLICA


def test_a_choice_that_failed_is_forgotten(clock: Clock) -> None:
    chosen = Choices(1.0)
    chosen.keep("a", REPLICA)
    chosen.drop("a")
    chosen.drop("a")
    assert chosen.known("a") is None


def test_no_more_choices_are_kept_than_have_room(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "MOST", 3)
    chosen = Choices(1.0)
    for document in range(10):
        chosen.keep(document, REPLICA)
        assert chosen.known(document) == REPLICA
    assert sum(chosen.known(document) is not None for document in range(10)) <= 3
