import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_cluster import settings
from lacuna_server.wire.config import ConfigError


@given(ongoing=st.floats(0, 100), now=st.integers(1, 20), per_replica=st.floats(0.5, 8), first=st.floats(0, 5))
def test_no_replica_has_more_than_its_requests_and_slow_first_steps_add_one(
    ongoing: float, now: int, per_replica: float, first: float
) -> None:
    number = settings.wanted(ongoing, now, per_replica, first, 1.0)
    # A quotient that is too small for a float needs no replica.
    assert number * per_replica >= ongoing * (1 - 1e-9) - sys.float_info.min
    if first > 1:
        assert number > now
    if 0.5 <= first <= 1:
        assert number >= now


def context(requests: dict[str, float], first: dict[str, float], now: int = 2) -> Any:
    return SimpleNamespace(
        aggregated_metrics={settings.REQUESTS: requests, settings.FIRST_SNAPSHOT: first},
        current_num_replicas=now,
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=4,
    )


def test_the_policy_reads_what_replicas_report_and_keeps_the_bounds() -> None:
    policy = settings.ByWaiting(per_replica=2.0, limit_s=1.0)
    assert policy(context({"a": 3, "b": 2}, {"a": 0.1}))[0] == 3
    assert policy(context({"a": 30, "b": 20}, {"a": 0.1}))[0] == 4
    assert policy(context({}, {}))[0] == 1
    assert policy(context({"a": 1}, {"a": 1.5, "b": 0.9}))[0] == 3
    assert policy(SimpleNamespace(**(vars(context({}, {})) | {"aggregated_metrics": None})))[0] == 1


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"colour": 1}, "colour: Extra inputs are not permitted"),
        ({"engines": []}, "engines: "),
        ({"engines": [{"replicas": 0}]}, "engines.0.replicas: "),
        ({"engines": [{"models": ["a"]}, {"models": ["b", "a"]}]}, "cluster: a model is served twice"),
        ({"engines": [{"scaling": {"least": 3, "most": 2}}]}, "engines.0.scaling: most is smaller than least"),
        ({"user_header": "X-User"}, "cluster: user_header needs proxy_token"),
        ({"service": {"host": "0.0.0.0"}}, "cluster: service.host has no meaning in a cluster"),
        ({"proxies": "Nowhere"}, "proxies: "),
    ],
)
def test_a_wrong_argument_is_named_in_one_line(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings.read(keys)
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)


def test_a_cluster_that_others_can_reach_needs_users() -> None:
    with pytest.raises(ConfigError, match="needs users"):
        settings.check(settings.read({}))
    settings.check(settings.read({"reachable": False}))
    settings.check(settings.read({"users": "users.toml"}))
    settings.check(settings.read({"user_header": "X-User", "proxy_token": "sha256:" + "0" * 64}))
