"""Caches suggestions: serves them again while the user types through them, and withholds rejected ones."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KEPT = 64
REMEMBERED = 256
COMPARED = 1000  # characters on each side that identify a place
NEAR = 200  # characters before the cursor that identify a rejection
MAX_CLOSED = 4
MAX_TYPED = 40
_CLOSERS = frozenset(")]}\"'`")


@dataclass(frozen=True, slots=True)
class CursorPlace:
    """The text around a cursor in one document, long enough to identify the place."""

    uri: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The result of a request to the engine: texts for one place, best first.

    ``request`` identifies the fill in feedback to the engine. ``several`` means that the engine was asked for several
    candidates. ``confidence`` is the probability (0..1) that the first line of the first text is the wanted one.
    ``why`` says why there is no text, where there is none.
    """

    place: CursorPlace
    texts: tuple[str, ...]
    request: str
    several: bool
    confidence: float = 1.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class SuggestionMatch:
    """The rest of a suggestion at a place: each text with its index among the candidates."""

    suggestion: Suggestion
    texts: tuple[tuple[int, str], ...]


class Suggestions:
    """The latest suggestions and rejections of one client."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Suggestion] = OrderedDict()
        self._rejected: deque[tuple[str, str, str]] = deque(maxlen=REMEMBERED)
        self._shown: tuple[CursorPlace, Sequence[str], str] | None = None
        self._refused: CursorPlace | None = None

    def keep(self, suggestion: Suggestion) -> None:
        """Stores a suggestion and drops the oldest ones over the limit."""
        self._kept[suggestion.request] = suggestion
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def at(self, place: CursorPlace) -> SuggestionMatch | None:
        """Returns the rest of the newest suggestion that leads to this place, or None."""
        for suggestion in reversed(self._kept.values()):
            texts = tuple(
                (index, rest)
                for index, text in enumerate(suggestion.texts)
                if (rest := _remainder(suggestion.place, text, place)) is not None
            )
            if texts or suggestion.place == place:
                return SuggestionMatch(suggestion, texts)
        return None

    def find(self, request: str) -> Suggestion | None:
        """Returns the suggestion of a request, or None if it is no longer stored."""
        return self._kept.get(request)

    def show(self, place: CursorPlace, texts: Sequence[str], request: str) -> None:
        """Records the texts that the user sees now."""
        self._shown = (place, texts, request)

    def hide(self) -> None:
        """Records that no suggestion is shown, so that the next edit does not count as a rejection."""
        self._shown = None

    def typed(self, place: CursorPlace) -> str | None:
        """Rejects the shown texts if the user typed something else; returns their request, else None."""
        if self._shown is None or self._shown[0].uri != place.uri:
            return None
        origin, texts, request = self._shown
        typed = typed_since(origin, place)
        if not typed or not texts or len(typed) > MAX_TYPED or any(agree(text, typed) for text in texts):
            return None
        for text in texts:
            self.reject(origin, text)
        self._shown, self._refused = None, origin
        return request

    def follows_refusal(self, place: CursorPlace) -> bool:
        """Whether the user typed over a suggestion earlier in this line."""
        typed = typed_since(self._refused, place) if self._refused is not None else None
        return typed is not None and "\n" not in typed

    def reject(self, place: CursorPlace, text: str) -> None:
        """Rejects a text: it is not suggested at this place again."""
        self._rejected.append(_key(place, text))

    def rejected(self, place: CursorPlace, text: str) -> bool:
        """Whether a text was rejected at this place."""
        return _key(place, text) in self._rejected

    def forget(self, uri: str) -> None:
        """Drops the suggestions of a closed document."""
        for request in [name for name, kept in self._kept.items() if kept.place.uri == uri]:
            del self._kept[request]


def distinct(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields the texts that are not blank and differ from all earlier ones, with their index."""
    seen: set[str] = set()
    for index, text in enumerate(texts):
        if text.strip() and text.strip() not in seen:
            seen.add(text.strip())
            yield index, text


def typed_since(origin: CursorPlace, place: CursorPlace) -> str | None:
    """Returns what was typed at ``origin`` to get to ``place``; None after any other edit or move of the cursor."""
    _, there, typed = place.before.rpartition(origin.before[-COMPARED:] or "\0")
    moved = origin.uri != place.uri or next(_closed(place.after, origin.after), None) is None
    return typed if there and not moved else None


def agree(text: str, typed: str) -> bool:
    """Whether one of two texts begins with the other."""
    return text.startswith(typed) or typed.startswith(text)


def _remainder(origin: CursorPlace, text: str, place: CursorPlace) -> str | None:
    """Returns the rest of a text suggested at ``origin`` after the user typed from there to ``place``, or None."""
    if origin.uri != place.uri:
        return None
    typed = _typed(origin.before[-COMPARED:], text, place.before)
    if typed is None:
        return None
    rest = text[len(typed) :]
    for size in _closed(place.after, origin.after):
        if rest.endswith(place.after[:size]):  # the text contains the closers, too
            return rest[: len(rest) - size] or None
    return None


def _closed(after: str, origin: str) -> Iterator[int]:
    """Yields how many brackets and quotes the editor may have inserted before the old suffix while the user typed."""
    for size in range(MAX_CLOSED + 1):
        if set(after[:size]) <= _CLOSERS and _begins(after[size:], origin):
            yield size


def _typed(anchor: str, text: str, before: str) -> str | None:
    """Returns the beginning of ``text`` that follows ``anchor`` at the end of ``before``, or None."""
    at = before.find(anchor, max(0, len(before) - len(anchor) - len(text)))
    while at != -1:
        typed = before[at + len(anchor) :]
        if text.startswith(typed):
            return typed
        at = before.find(anchor, at + 1)
    return None


def _begins(after: str, origin: str) -> bool:
    """Whether a text begins with the old suffix; a short suffix must be equal as a whole."""
    return after.startswith(origin[:COMPARED]) and (len(origin) >= COMPARED or len(after) == len(origin))


def _key(place: CursorPlace, text: str) -> tuple[str, str, str]:
    return place.uri, place.before[-NEAR:], text.strip()
