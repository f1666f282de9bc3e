import pytest
from prometheus_client import CollectorRegistry

from lacuna_cluster.people import users as usage_module
from lacuna_cluster.people.users import Usage, User
from lacuna_server.wire.protocol import ServiceError

USERS = {"alice": User(requests_per_minute=3), "bob": User()}


class Clock:
    now = 600.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(usage_module, "time", clock := Clock())
    return clock


def test_a_quota_holds_for_a_minute_and_over_all_ingresses(clock: Clock) -> None:
    one, other = Usage(USERS, CollectorRegistry()), Usage(USERS, CollectorRegistry())
    one.admit("alice")
    other.admit("alice")
    one.learn([other.figures("other")])
    one.admit("alice")
    clock.now += 45
    with pytest.raises(ServiceError) as caught:
        one.admit("alice")
    assert (caught.value.code, caught.value.retry_after_ms) == ("rate_limited", 15_000)
    for _ in range(100):
        one.admit("bob")
        one.admit("")
    clock.now += 15
    one.learn([other.figures("other")])
    one.admit("alice")


def test_what_another_ingress_counted_in_an_earlier_minute_is_not_counted(clock: Clock) -> None:
    one, other = Usage(USERS, CollectorRegistry()), Usage(USERS, CollectorRegistry())
    for _ in range(3):
        other.admit("alice")
    late = other.figures("other")
    clock.now += 60
    one.learn([late])
    one.admit("alice")
