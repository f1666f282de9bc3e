"""What each user uses: quotas of requests a minute, and metrics without code in them."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Metric

from lacuna_cluster.messages import IngressFigures
from lacuna_cluster.people.users import User
from lacuna_model.core.params import FillStats
from lacuna_server.wire.protocol import ServiceError

MINUTE_S = 60


class Usage:
    """Counts the requests of each user, in the present minute against the quota, and in all for Prometheus.

    Every ingress counts what passes through it, and learns the counts of the others about once a second. So a user who
    asks several of them may exceed the quota by what they use in that second.
    """

    def __init__(self, users: Mapping[str, User], registry: CollectorRegistry) -> None:
        self.users = users
        self._minute = 0
        self._used: Counter[str] = Counter()
        self._elsewhere: Counter[str] = Counter()
        self._requests = Metric("lacuna_user_requests", "Fills of a user", ["user", "outcome"], registry=registry)
        self._tokens = Metric("lacuna_user_tokens", "Tokens of delivered fills", ["user"], registry=registry)
        self._refused = Metric("lacuna_user_over_quota", "Requests over the quota", ["user"], registry=registry)

    def admit(self, user: str) -> None:
        """Count a request of a user. Raises ServiceError ``rate_limited`` where it exceeds the quota."""
        self._turn_minute()
        quota = self.users[user].requests_per_minute if user in self.users else 0
        if quota and self._used[user] + self._elsewhere[user] >= quota:
            self._refused.labels(user).inc()
            left_ms = round((MINUTE_S - time.time() % MINUTE_S) * 1e3)
            raise ServiceError("rate_limited", f"more than {quota} requests in this minute", max(left_ms, 1))
        self._used[user] += 1

    def ended(self, user: str, outcome: str, stats: FillStats) -> None:
        """Count the end of a request."""
        if user:
            self._requests.labels(user, outcome).inc()
            self._tokens.labels(user).inc(stats.tokens)

    def figures(self, replica: str) -> IngressFigures:
        """Return what the other ingresses need to know."""
        self._turn_minute()
        return IngressFigures(replica, self._minute, dict(self._used))

    def learn(self, others: Iterable[IngressFigures]) -> None:
        """Take over the counts of the other ingresses."""
        self._turn_minute()
        counts = (Counter(other.used) for other in others if other.minute == self._minute)
        self._elsewhere = sum(counts, Counter[str]())

    def _turn_minute(self) -> None:
        if (minute := int(time.time() // MINUTE_S)) != self._minute:
            self._minute = minute
            self._used.clear()
            self._elsewhere.clear()
