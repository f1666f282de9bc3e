"""Remembers for a moment which replica has a document, so that Ray Serve is not asked again at every key."""

import time
from collections.abc import Hashable

from lacuna_server.cluster.ingress.links import ReplicaAddress
from lacuna_server.cluster.ingress.loads import LOADS

# A choice holds so long; then a replica that has come gets its documents, and one with too much work loses some.
KEPT_S = 1.0
MOST = 10_000


class Choices:
    """The replicas that Ray Serve chose in the last ``kept_s`` seconds, by document."""

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._kept: dict[Hashable, tuple[ReplicaAddress, float]] = {}

    def known(self, document: Hashable) -> ReplicaAddress | None:
        """Return the replica of a document, None where it has to be chosen."""
        where, until = self._kept.get(document, (None, 0.0))
        return None if where is None or time.monotonic() >= until or LOADS.is_lost(where.replica) else where

    def keep(self, document: Hashable, where: ReplicaAddress) -> None:
        """Remember a choice."""
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[document] = where, time.monotonic() + self._kept_s

    def drop(self, document: Hashable) -> None:
        """Forget a choice: the replica has refused a request or is gone."""
        self._kept.pop(document, None)
