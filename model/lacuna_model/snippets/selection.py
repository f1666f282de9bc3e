"""Selects the best candidates that fit the budget, and stays with what was selected while that is good enough."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lacuna_model.core.params import Snippet
from lacuna_model.snippets.format import similarity

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
        there = (surroundings, *(other.text for other in (*have, *picked)))
        if any(one.text in text or similarity(one.text, text) > _SAME for text in there):
            continue
        tokens = count(one)
        if tokens <= budget:
            picked.append(one)
            budget -= tokens
    return picked


def _key(snippet: Snippet) -> tuple[str, str]:
    return snippet.path, snippet.text
