"""Which model answers a request, and with how much context: the most that can answer in time.

The tiers, best first: the model with its whole window, the smaller model that drafts for it with the same window (if it
has outputs for all tokens), and the smaller of them with the text nearest to the gap alone. Times are predicted from
the tokens that are still to be read and what passes cost here; where none is in time, the first to answer does. What a
lesser tier answers meanwhile, the better one need not read at once.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lacuna_model.core.context import Layout, WindowChooser, WindowOptions
from lacuna_model.core.errors import RequestError
from lacuna_model.fim import measuring
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.measuring import LINE_ROWS
from lacuna_model.hub.models import line_ms
from lacuna_model.readers import Cache, Loaded, new_cache

# The text nearest to a gap, in tokens. An AVX2 machine with two cores reads it in half a second.
NEAREST = WindowOptions(before=96, after=32, snippets=0)
# The first line of a fill takes about so many passes, of so many rows, once its context is read.
PASSES, ROWS = 4, 4
# After so many fills what their passes cost says how fast this machine is: if that is not known, after a few.
TELLING_FILLS, FIRST_TELLING_FILLS = 64, 8
# A part of the memory for contexts that those of the nearest text may take.
SHARE_OF_NEAREST = 1 / 8

# Enough for about twelve documents of 1,800 context tokens with the 0.5B, for three with the 1.5B and its draft model.
CACHE_BYTES = 256 * 1024 * 1024


@dataclass(eq=False)
class DocumentSession:
    """The state of one document: the keys and values of its context, its window, and the ``opening`` of its prompt."""

    cache: Cache
    window: WindowChooser
    opening: tuple[int, ...] = ()


# The layout of a fill in a context: with the request's snippets, or the text alone.
Lay = Callable[[DocumentSession, bool], Layout]


@dataclass(eq=False)
class DocumentSessions:
    """The sessions of the documents used last: as many as fit in ``budget`` bytes of keys and values, at least one."""

    model: Loaded
    options: WindowOptions
    budget: int
    _sessions: OrderedDict[str, DocumentSession] = field(default_factory=OrderedDict)
    _running: set[str] = field(default_factory=set)

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
            self._sessions[key] = DocumentSession(new_cache(self.model), WindowChooser(self.options))
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
        for key in [*self._sessions][:-1]:
            if self.num_bytes > self.budget and key not in self._running:
                del self._sessions[key]


@dataclass(frozen=True, slots=True)
class Tier:
    """A model, and the document's context that it reads: ``nearest`` where that is only the text around the gap.

    ``unread`` are the tokens that the best tier would have had to read first, where this is a lesser one.
    """

    model: Loaded
    session: DocumentSession
    nearest: bool = False
    unread: int = 0


class Tiers:
    """The contexts of all documents, and the choice among the tiers."""

    def __init__(self, model: Loaded, window: WindowOptions, cache_bytes: int) -> None:
        self._model = model
        self.sessions = DocumentSessions(model, window, cache_bytes)
        smaller = model.smaller if isinstance(model, LoadedFim) else None
        self._smaller = smaller if smaller is not None and smaller.answers else None
        self._small = self._smaller or model
        self._num_fills = 0
        self._nearest = DocumentSessions(self._small, NEAREST, int(cache_bytes * SHARE_OF_NEAREST))

    @contextmanager
    def running(self, document: str, lay: Lay, due_ms: float) -> Iterator[Tier]:
        """Hold the contexts of a document for one fill, which is due in ``due_ms`` milliseconds (0: at any time).

        ``lay`` returns the layout of the fill in a context. Raises RequestError as :meth:`.Sessions.running` does.
        """
        with self.sessions.running(document) as session:
            if not due_ms or not isinstance(session.cache, FimContext):
                yield Tier(self._model, session)
                return
            layout = lay(session, True)
            tiers = [Tier(self._model, session)]
            if self._smaller is not None:  # with the context that it has to draft
                assert session.cache.smaller is not None
                drafting = DocumentSession(session.cache.smaller, session.window)
                tiers.append(Tier(self._smaller, drafting, unread=session.cache.missing(layout)))
            times = [_predicted_ms(tier, layout) for tier in tiers]
            in_time = next((tier for tier, ms in zip(tiers, times, strict=True) if ms <= due_ms), None)
            if in_time is not None:
                yield in_time
                return
            with self._nearest.running(document) as nearest:
                last = Tier(self._small, nearest, nearest=True, unread=session.cache.num_unread)
                tiers, times = [*tiers, last], [*times, _predicted_ms(last, lay(nearest, False))]
                yield tiers[times.index(min(times))]

    def filled(self) -> None:
        """Count a fill; now and then compare what a line takes with the speed that the default model is chosen by."""
        self._num_fills += 1
        if not isinstance(self._model, LoadedFim) or self._model.path is None:
            return
        if self._num_fills % TELLING_FILLS == 0 or (self._num_fills == FIRST_TELLING_FILLS and line_ms() is None):
            taken = sum(map(self._model.costs.ms, LINE_ROWS))
            measuring.correct(taken, self._model.config.num_weights)


def _predicted_ms(tier: Tier, layout: Layout) -> float:
    """The milliseconds until a tier has written a line; 0 where nothing is known of its passes."""
    model, cache = tier.model, tier.session.cache
    assert isinstance(model, LoadedFim)
    assert isinstance(cache, FimContext)
    return model.costs.reading_ms(cache.missing(layout)) + PASSES * model.costs.ms(ROWS)
