"""Routes a document's requests to the replica that has its cache, unless that one has more than its share of work."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.request_router import PendingRequest, RunningReplica

from lacuna_cluster.ingress.loads import LOADS
from lacuna_cluster.messages import Ask

# A document without a name is known by how it begins; most typing leaves that as it is.
PREFIX = 512
EVERY_REPLICA = 1_000_000


def key(ask: Ask) -> str:
    """Return what decides which replica a question goes to: the session and document, or else the text's beginning."""
    asked = ask.submission
    known_by = "\0".join(asked.key) if asked.document else asked.request.text[:PREFIX]
    return hashlib.blake2b(known_by.encode(), digest_size=16).hexdigest()


def bound(loads: Sequence[int], factor: float, at_least: int) -> int:
    """Return how many requests a replica may have before a new one goes elsewhere: ``factor`` of the mean load.

    Below ``at_least``, which a replica works on at the same time, nothing waits and no request goes elsewhere. See
    Mirrokni, Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", 2018.
    """
    return max(at_least, math.ceil(factor * (sum(loads) + 1) / max(len(loads), 1)))


class DocumentRouter(ConsistentHashRouter):
    """Ray Serve's consistent hashing, with bounded loads.

    The order of the replicas is that of the ring, so a document's second replica is always the same too. Replicas that
    hold the model that the request names come first, those that were lost last. Keyword arguments are ``factor`` and
    ``at_least`` of ``bound``.
    """

    def initialize_state(self, factor: float = 1.25, at_least: int = 1, **more: Any) -> None:
        """Take the keyword arguments of the configuration."""
        super().initialize_state(num_fallback_replicas=EVERY_REPLICA, **more)
        self._factor, self._at_least = factor, at_least

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Return the candidates one by one, the best first."""
        ranks = await super().choose_replicas(candidate_replicas, pending_request)
        if pending_request is None or not ranks:
            return ranks
        model = pending_request.metadata.multiplexed_model_id
        loads = {replica.replica_id: LOADS.of(replica.replica_id.unique_id) for replica in candidate_replicas}
        most = bound(list(loads.values()), self._factor, self._at_least)

        def badness(rank: list[RunningReplica]) -> tuple[bool, bool, bool]:
            (replica,) = rank
            lost = LOADS.is_lost(replica.replica_id.unique_id)
            return lost, model not in replica.multiplexed_model_ids, loads.get(replica.replica_id, 0) >= most

        return sorted(ranks, key=badness)  # stable: it keeps the order of the ring
