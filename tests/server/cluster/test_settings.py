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


def test_a_cluster_that_others_can_reach_needs_users() -> None:
    with pytest.raises(ConfigError, match="needs users"):
        settings.read({})
    settings.read({"reachable": False})
    settings.read({"users": "users.toml", "ingresses": "3"})  # `serve run` sends texts
    settings.read({"user_header": "X-User", "proxy_token": "sha256:" + "0" * 64})
    with pytest.raises(ConfigError, match="matching regex"):
        settings.read({"user_header": "X-User", "proxy_token": "sha256:" + "0" * 64 + "\n"})
