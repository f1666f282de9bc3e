"""Asks the model about places of which the rules are not sure: is the changed text likelier there than the present one?

The model reads the last change as a diff, and the lines around the place. How much its answer counts was fitted on real
commits, as the rules were.
"""

import asyncio
import logging
import math
from collections.abc import Sequence

import msgspec

from lacuna_lsp.documents.document import Document
from lacuna_lsp.engine.connection import Engine
from lacuna_lsp.next_edit.offers import Offer
from lacuna_model.core.params import Region, Snippet
from lacuna_model.next_edit.changes import Change
from lacuna_server.wire.protocol import ServiceError

log = logging.getLogger(__name__)

MOST = 3  # places that are asked about, the likeliest ones
PATIENCE_S = 1.0
CONTEXT_ROWS = 2
# Weights of the rules' log-odds and of the difference of the model's log-probabilities (nats).
BIAS, OF_RULES, OF_MODEL = 0.42, 1.06, 0.13


async def weigh(engine: Engine, document: Document, change: Change, doubtful: Sequence[Offer]) -> list[Offer]:
    """Returns the likeliest doubtful offers with probabilities that count the model's answer.

    The list is empty where the model is not ready or does not answer in time.
    """
    asked = sorted(doubtful, key=lambda offer: -offer.probability)[:MOST]
    asked.sort(key=lambda offer: offer.row)
    if not asked or engine.news.state != "ready":
        return []
    lines = document.text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    regions = [Region(starts[one.row], starts[one.end_row], choices=(one.old, one.new)) for one in asked]
    try:
        async with asyncio.timeout(PATIENCE_S):
            result = await engine.infill(document, regions, snippets=(as_diff(change),), supersede=False)
    except (ServiceError, TimeoutError, OSError) as error:
        log.info("the model does not weigh next edits: %s", error)
        return []
    return [_weighed(one, new - old) for one, (old, new) in zip(asked, result.likelihoods, strict=True)]


def _weighed(offer: Offer, difference: float) -> Offer:
    odds = math.log(offer.probability / (1 - offer.probability))
    total = BIAS + OF_RULES * odds + OF_MODEL * max(min(difference, 40.0), -40.0)
    return msgspec.structs.replace(offer, probability=1 / (1 + math.exp(-total)))


def as_diff(change: Change) -> Snippet:
    """Returns a change as a unified diff with some lines around it."""
    old, new, hunk = change.old.text.splitlines(), change.new.text.splitlines(), change.hunk
    rows = [f" {line}" for line in old[max(hunk.start - CONTEXT_ROWS, 0) : hunk.start]]
    rows += [f"-{line}" for line in old[hunk.start : hunk.end]]
    rows += [f"+{line}" for line in new[hunk.new_start : hunk.new_end]]
    rows += [f" {line}" for line in old[hunk.end : hunk.end + CONTEXT_ROWS]]
    return Snippet("changes.diff", "\n".join(["@@", *rows]), reason="the last change")
