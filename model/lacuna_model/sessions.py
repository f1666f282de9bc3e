"""The state kept for each document, its window and cached context, within a memory budget."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from lacuna_model.backends.readers import Cache, Loaded, new_cache
from lacuna_model.core.errors import RequestError
from lacuna_model.core.window import WindowChooser, WindowOptions

# Enough for about twelve documents of 1,800 context tokens with the 0.5B, for three with the 1.5B and its draft model.
CACHE_BYTES = 256 * 1024 * 1024


class DocumentSession:
    """The state of one document: its window, the keys and values of its context, and the ``opening`` of its prompt."""

    def __init__(self, cache: Cache, window: WindowChooser) -> None:
        self.window = window
        self.cache = cache
        self.opening: tuple[int, ...] = ()


class DocumentSessions:
    """The sessions of the documents used last: as many as fit in ``budget`` bytes of keys and values, at least one."""

    def __init__(self, model: Loaded, options: WindowOptions, budget: int) -> None:
        self._model = model
        self._options = options
        self._budget = budget
        self._sessions: OrderedDict[str, DocumentSession] = OrderedDict()
        self._running: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._sessions

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values of all documents hold."""
        return sum(session.cache.num_bytes for session in self._sessions.values())

    @contextmanager
    def running(self, key: str) -> Iterator[DocumentSession]:
        """Hold a document's session for one fill; it is not dropped before the block ends.

        Raises RequestError where another fill of the same document is running, since the two would overwrite each
        other's cache.
        """
        if key in self._running:
            raise RequestError("another fill of this document is under way")
        if key not in self._sessions:
            self._sessions[key] = DocumentSession(new_cache(self._model), WindowChooser(self._options))
        self._sessions.move_to_end(key)
        self._running.add(key)
        self._make_room()
        try:
            yield self._sessions[key]
        finally:
            self._running.remove(key)
            self._make_room()

    def _make_room(self) -> None:
        """Drop the least recently used idle documents until the budget holds."""
        idle = [key for key in self._sessions if key not in self._running and key != next(reversed(self._sessions))]
        for key in idle:
            if self.num_bytes <= self._budget:
                return
            del self._sessions[key]
