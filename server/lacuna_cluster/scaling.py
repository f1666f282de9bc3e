"""How many engine replicas are wanted: enough for the requests, and more where first steps take too long."""

import math
from typing import Any

from ray.serve.config import AutoscalingContext

FIRST_SNAPSHOT = "first_snapshot_s"
REQUESTS = "requests"


def wanted(ongoing: float, now: int, per_replica: float, first_s: float, limit_s: float) -> int:
    """Return the number of replicas for ``ongoing`` requests, running or waiting, with ``per_replica`` at each.

    While a request waits longer than ``limit_s`` seconds for its first step on average, one more than ``now``. Where it
    waits less than half of that, the number may fall; between the two it stays.
    """
    by_queue = math.ceil(ongoing / per_replica)
    if first_s > limit_s:
        return max(by_queue, now + 1)
    return by_queue if first_s < limit_s / 2 else max(by_queue, now)


class ByWaiting:
    """Ray Serve's autoscaling policy for engine replicas; Serve itself applies the delays and the bounds."""

    def __init__(self, per_replica: float = 2.0, limit_s: float = 1.0) -> None:
        self._per_replica = per_replica
        self._limit_s = limit_s

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        """Return the wanted number of replicas, and a state, which is empty."""
        metrics = context.aggregated_metrics or {}
        reported = metrics.get(FIRST_SNAPSHOT, {}).values()
        first_s = sum(reported) / len(reported) if reported else 0.0
        requests = sum(metrics.get(REQUESTS, {}).values())
        number = wanted(requests, context.current_num_replicas, self._per_replica, first_s, self._limit_s)
        least, most = context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas
        return min(max(number, least), most), {}
