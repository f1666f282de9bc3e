from types import SimpleNamespace
from typing import Any

import pytest

from lacuna_cluster import settings
from lacuna_server.wire.config import ConfigError


@pytest.mark.parametrize(
    ("requests", "number"), [({"a": 3, "b": 2}, 3), ({"a": 30, "b": 20}, 4), ({}, 1), (None, 1)], ids=str
)
def test_there_are_as_many_replicas_as_the_requests_need_within_the_bounds(
    requests: dict[str, float] | None, number: int
) -> None:
    metrics = {settings.REQUESTS: requests} if requests is not None else None
    bounds = {"capacity_adjusted_min_replicas": 1, "capacity_adjusted_max_replicas": 4}
    context: Any = SimpleNamespace(aggregated_metrics=metrics, **bounds)
    assert settings.ByRequests(per_replica=2.0)(context)[0] == number


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
