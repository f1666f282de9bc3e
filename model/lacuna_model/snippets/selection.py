"""Selects the best candidates that fit the budget; the chunks that were edited last are among them."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lacuna_model.core.params import Snippet
from lacuna_model.files.secrets import holds_credential
from lacuna_model.snippets.format import plain, similarity, words

NUM_CHUNKS = 16
# Rows of a chunk before and after the place of the edit.
_ROWS_BEFORE = 12
_ROWS_AFTER = 12
# A chunk replaces an older one of the same file that is more similar than this.
_SAME_CHUNK = 0.6
_BEST_SCORE = 0.6
_DECAY = 0.85
# More similar texts are taken to repeat each other.
_SAME = 0.5
_MAX_SNIPPETS = 8
_MIN_SCORE = 0.12
# Snippets are exchanged when the others' summed score exceeds theirs by this factor and this margin, since all of them
# then have to be encoded again. While the cursor stays in its row, more is required.
_CLEAR_GAIN = (1.25, 0.1)
_CLEAR_GAIN_IN_LINE = (1.6, 0.3)
# Where the budget allows, a snippet with this score is appended, which costs only its own tokens.
_WORTH_ADDING = 0.5
Count = Callable[[Snippet], int]


@dataclass(frozen=True, slots=True)
class _Recent:
    path: str
    text: str
    reason: str


class RecentChunks:
    """The last chunks, the newest at the end."""

    def __init__(self) -> None:
        self._ring: tuple[_Recent, ...] = ()

    def note(self, path: str, text: str, offset: int, reason: str) -> None:
        """Add the rows around ``offset`` (bytes) of a document; rows that hold a credential are not kept."""
        row = plain(text.encode()[:offset].decode("utf-8", errors="ignore")).count("\n")
        lines = plain(text).split("\n")[max(0, row - _ROWS_BEFORE) : row + _ROWS_AFTER]
        chunk = "".join(f"{line.rstrip()}\n" for line in lines).strip("\n") + "\n"
        if not chunk.strip() or holds_credential(chunk):
            return
        others = [one for one in self._ring if one.path != path or similarity(one.text, chunk) < _SAME_CHUNK]
        self._ring = (*others, _Recent(path, chunk, reason))[-NUM_CHUNKS:]

    def candidates(self, path: str, query: set[str], known: Container[str]) -> Iterator[Snippet]:
        """The chunks of ``known`` files except ``path``; newer ones and more words of ``query`` score higher."""
        others = [one for one in reversed(self._ring) if one.path != path and one.path in known]
        for age, one in enumerate(others):
            shared = len(query & set(words(one.text))) / max(1, len(query))
            yield Snippet(one.path, one.text, one.reason, _BEST_SCORE * _DECAY**age * (0.5 + 0.5 * shared))


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected snippets of a document, in the order in which the model reads them, and the cursor's row."""

    snippets: tuple[Snippet, ...] = ()
    row: int = -1


def select(
    old: Selection, candidates: Iterable[Snippet], row: int, surroundings: str, count: Count, budget: int
) -> Selection:
    """Choose for a cursor in ``row``; the old selection stays until the gain is clear.

    ``count`` returns the tokens of a snippet. Snippets that stay keep their place at the front; new ones follow, the
    best last, so that the cached tokens before them stay valid.
    """
    ranked = sorted(candidates, key=lambda one: (-one.score, one.path, one.text))
    best = _pick(ranked, (), surroundings, count, budget)
    scores = {_key(one): one.score for one in reversed(ranked)}
    taken = sum(map(count, old.snippets))
    kept = old.snippets if taken <= budget else ()
    factor, margin = _CLEAR_GAIN_IN_LINE if row == old.row else _CLEAR_GAIN
    value = sum(scores.get(_key(one), 0.0) for one in kept)
    if kept and sum(one.score for one in best) <= factor * value + margin:
        good = [one for one in ranked if one.score >= _WORTH_ADDING]
        added = _pick(good, kept, surroundings, count, budget - taken)
        return Selection((*kept, *reversed(added)), row)
    wanted = {_key(one) for one in best}
    staying = [one for one in kept if _key(one) in wanted]
    coming = [one for one in reversed(best) if _key(one) not in set(map(_key, staying))]
    return Selection((*staying, *coming), row)


def _pick(
    ranked: Sequence[Snippet], have: Sequence[Snippet], surroundings: str, count: Count, budget: int
) -> list[Snippet]:
    """The best that fit besides ``have``, best first, without text that the surroundings or another snippet repeat."""
    picked: list[Snippet] = []
    for one in ranked:
        if len(have) + len(picked) >= _MAX_SNIPPETS or one.score < _MIN_SCORE:
            break
        if any(_alike(one.text, text) for text in (surroundings, *(other.text for other in (*have, *picked)))):
            continue
        tokens = count(one)
        if tokens <= budget:
            picked.append(one)
            budget -= tokens
    return picked


def _alike(text: str, other: str) -> bool:
    return text in other or similarity(text, other) > _SAME


def _key(snippet: Snippet) -> tuple[str, str]:
    return snippet.path, snippet.text
