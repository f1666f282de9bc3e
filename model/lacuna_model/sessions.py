"""What the engine remembers of documents: their windows and cached contexts, within a budget of memory."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from lacuna_model.backends.readers import Cache, Loaded, new_cache
from lacuna_model.core.errors import RequestError
from lacuna_model.core.window import Window, WindowOptions

# Of the default model about twelve documents with 1,800 tokens of context each.
CACHE_BYTES = 256 * 1024 * 1024


class Session:
    """What the engine remembers of one document: its window and its context's keys and values."""

    def __init__(self, cache: Cache, options: WindowOptions) -> None:
        self.window = Window(options)
        self.cache = cache


class Sessions:
    """The documents used last, as many as ``budget`` bytes of keys and values hold and the last one in any case."""

    def __init__(self, model: Loaded, options: WindowOptions, budget: int) -> None:
        self._model = model
        self._options = options
        self._budget = budget
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._running: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._sessions

    @property
    def num_bytes(self) -> int:
        """Memory that the keys and values of all documents hold."""
        return sum(session.cache.num_bytes for session in self._sessions.values())

    @contextmanager
    def running(self, key: str) -> Iterator[Session]:
        """A document's session, for one fill at a time; it is not dropped before the block ends.

        Raises RequestError where a fill of the same document is under way: the two would write over each other.
        """
        if key in self._running:
            raise RequestError("another fill of this document is under way")
        if key not in self._sessions:
            self._sessions[key] = Session(new_cache(self._model), self._options)
        self._sessions.move_to_end(key)
        self._running.add(key)
        self._make_room()
        try:
            yield self._sessions[key]
        finally:
            self._running.remove(key)
            self._make_room()

    def _make_room(self) -> None:
        """Drop the least recently used documents that nobody works on, until the budget holds."""
        idle = [key for key in self._sessions if key not in self._running and key != next(reversed(self._sessions))]
        for key in idle:
            if self.num_bytes <= self._budget:
                return
            del self._sessions[key]
