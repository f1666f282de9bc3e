"""The replicas of the cluster as an ingress reaches them, and which of them has a document's cache."""

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from ray import serve
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.handle import DeploymentHandle
from ray.serve.request_router import PendingRequest, RunningReplica

from lacuna_cluster import links
from lacuna_cluster.links import LOADS, Ask, EngineFigures, IngressFigures, Lost, ReplicaAddress, Reply
from lacuna_server.wire.protocol import Error

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


INGRESS = "Ingress"
ANSWER_S = 2.0
# A choice holds so long; then a replica that has come gets its documents, and one with too much work loses some.
KEPT_S = 1.0
MAX_CHOICES = 10_000


class RayFleet:
    """The replicas of the cluster, asked through the handles of Ray Serve."""

    def __init__(self, handles: Mapping[str, DeploymentHandle[Any]], app: str) -> None:
        """``handles`` has the engine deployment of each model."""
        self._handles = handles
        self._ingresses: DeploymentHandle[Any] = serve.get_deployment_handle(INGRESS, app)
        # The replicas that were chosen lately, and until when that holds: so Ray Serve is not asked at every key.
        self._chosen: dict[tuple[str, str], tuple[ReplicaAddress, float]] = {}

    async def ask(self, ask: Ask) -> AsyncGenerator[Reply]:
        """Send a question to the replica that has its document's cache."""
        document = ask.model, key(ask)
        where, until = self._chosen.get(document, (None, 0.0))
        if where is None or time.monotonic() >= until or LOADS.is_lost(where.replica):
            where = await self._choose(*document)
            if len(self._chosen) >= MAX_CHOICES:
                self._chosen.clear()
            self._chosen[document] = where, time.monotonic() + KEPT_S
        try:
            async with aclosing(links.ask(where, ask)) as replies:
                async for reply in replies:
                    if isinstance(reply, Error):
                        self._chosen.pop(document, None)
                    yield reply
        except Lost:
            self._chosen.pop(document, None)
            raise

    async def _choose(self, model: str, document: str) -> ReplicaAddress:
        """Let Ray Serve choose. It only chooses: what follows goes past it, so there is nothing to reserve."""
        handle = self._handles[model].options(session_id=document, multiplexed_model_id=model)
        async with handle.choose_replica(_reserve=False) as chosen:
            return ReplicaAddress(*chosen.replica_metadata["where"])

    async def engines(self) -> list[EngineFigures]:
        """Return the figures of all engine replicas that answer in time."""
        deployments = {handle.deployment_id: handle for handle in self._handles.values()}
        answers = await asyncio.gather(*(_all(handle, "figures") for handle in deployments.values()))
        return [figures for answer in answers for figures in answer]

    async def ingresses(self) -> list[IngressFigures]:
        """Return the figures of all running ingresses that answer in time."""
        return await _all(self._ingresses, "figures")

    async def metrics(self) -> list[tuple[str, bytes]]:
        """Return name and metrics of all running ingresses that answer in time."""
        return await _all(self._ingresses, "metrics")


async def _all(handle: DeploymentHandle[Any], method: str) -> list[Any]:
    """Call a method of every replica, and return what those that live have answered within ``ANSWER_S`` seconds."""
    answers = await handle.broadcast(method).results_async(timeout_s=ANSWER_S, return_exceptions=True)
    return [answer for answer in answers if not isinstance(answer, BaseException)]
