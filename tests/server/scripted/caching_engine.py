"""The scripted engine with a model of the engine's cache: how many documents a replica remembers, and how much of each.

Of a document that is remembered, the part before the first difference comes from the cache. The document used least
recently is forgotten; there is room for ``NUM_DOCUMENTS``.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator

import msgspec
from scripted_engine import ScriptedEngine

from lacuna_model.core.params import InfillRequest, InfillResult, Snapshot
from lacuna_server.wire.frames import Setup

NUM_DOCUMENTS = 20  # what 256 MiB hold for the 0.5B, of about 1,000 tokens each
CHARACTERS_PER_TOKEN = 4


class CachingEngine(ScriptedEngine):
    """Fills as ``ScriptedEngine``, and counts the tokens of the context and those that a cache would have had."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: OrderedDict[str, str] = OrderedDict()

    def stream(self, request: InfillRequest, *, document: str) -> Generator[Snapshot, None, InfillResult]:
        result = yield from super().stream(request, document=document)
        same = num_same(self._texts.pop(document, ""), request.text)
        self._texts[document] = request.text
        if len(self._texts) > NUM_DOCUMENTS:
            self._texts.popitem(last=False)
        stats = msgspec.structs.replace(
            result.stats,
            context_tokens=len(request.text) // CHARACTERS_PER_TOKEN,
            cached_tokens=same // CHARACTERS_PER_TOKEN,
        )
        return msgspec.structs.replace(result, stats=stats)


def num_same(one: str, other: str) -> int:
    """The length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def load(setup: Setup, report: Callable[[float, str], None]) -> CachingEngine:
    return CachingEngine()
