import pytest

from lacuna_cluster.ingress import loads as loads_module
from lacuna_cluster.ingress.loads import Loads


def test_own_requests_count_at_once_and_others_as_they_are_reported() -> None:
    loads = Loads()
    loads.begin("a")
    loads.begin("a")
    loads.reported("a", 5)
    assert loads.of("a") == 5
    loads.end("a")
    assert loads.of("a") == 4
    loads.reported("a", 0)  # an older figure than what is under way
    assert (loads.of("a"), loads.of("b")) == (1, 0)


def test_a_replica_that_has_gone_is_forgotten_once_its_requests_have_ended() -> None:
    loads = Loads()
    loads.begin("a")
    loads.reported("a", 3)
    loads.keep_only({"b"})
    assert loads.of("a") == 1
    loads.end("a")
    loads.keep_only({"b"})
    assert loads.of("a") == 0


def test_a_replica_is_lost_for_a_while_or_until_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Loads()
    assert not loads.is_lost("a")
    loads.lost("a")
    loads.lost("b")
    loads.found("b")
    assert (loads.is_lost("a"), loads.is_lost("b")) == (True, False)
    monkeypatch.setattr(loads_module, "LOST_S", 0.0)
    assert not loads.is_lost("a")
