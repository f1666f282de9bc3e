"""Asks the model what becomes of the lines near a change, where no rule says what follows.

The model reads the last changes and rewrites the lines after the newest one. What it changes there is offered where it
is sure. On the real commits it changes too few places to fit weights; those below separate its right ones from others.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from lacuna_lsp.client.errors import UnfinishedError
from lacuna_lsp.documents.document import ClientDocument
from lacuna_lsp.engine.connection import ServiceConnection
from lacuna_lsp.next_edit.offers import Offer, is_worth, reverts
from lacuna_model.core.params import DecodeOptions, FollowChanges, PastChange, Region
from lacuna_model.next_edit.changes import RecentChange, hunks
from lacuna_server.wire.protocol import ServiceError

ROWS = 12  # lines below the change that are rewritten
# A model made for next edits rewrites so many lines around the cursor, as it has learned it.
WINDOW_ROWS = 21
MAX_TOKENS = 120
CONTEXT_ROWS = 3
MAX_PAST = 3  # earlier changes that the model reads
PATIENCE_S = 20.0
# Weights of the log-probability (nats) of the changed lines.
BIAS, OF_MODEL = 2.0, 0.25
LEAST = -60.0  # lower log-probabilities make no difference
_IMPORT = re.compile(
    r"(import|from|use|using|require|include|#\s*include|export\s.*\bfrom)\b|(const|let|var)\b.*\brequire\("
)


async def near(
    engine: ServiceConnection, document: ClientDocument, change: RecentChange, past: Sequence[PastChange], row: int
) -> list[Offer]:
    """Returns what the model would change near a change, with probabilities; ``row`` is the cursor's line.

    Raises UnfinishedError where the model is not ready or does not answer in time.
    """
    if engine.news.state != "ready":
        raise UnfinishedError(f"the engine is not ready: {engine.news.state}")
    lines = document.text.decode().splitlines(keepends=True)
    first, last = window(change, len(lines), row, made_for_it=engine.follows_edits)
    if not "".join(lines[first:last]).strip():
        return []
    starts = [*accumulate((len(line.encode()) for line in lines), initial=0)]
    region = Region(starts[first], starts[last], max_tokens=MAX_TOKENS)
    task = FollowChanges((*past[-MAX_PAST:], around(document.path, change)))
    options = DecodeOptions(deadline_ms=int(PATIENCE_S * 1e3))
    try:
        result = await engine.infill(document, [region], task=task, options=options)
    except (ServiceError, OSError) as error:
        raise UnfinishedError(f"the model writes no next edits: {error}") from None
    if result.status == "deadline":
        raise UnfinishedError(f"the model wrote no next edit within {PATIENCE_S:g} s")
    if result.status != "ok":
        return []
    found = _offers(document.uri, lines, first, last, result.fills[0], result.likelihoods[0])
    done = [*past, PastChange(document.path, *change.lines)]
    worth = [one for one in found if is_worth(one) and not _is_of_imports(one)]
    return [one for one in worth if not reverts(one, done) and not _brings_back(one, done)]


def _is_of_imports(offer: Offer) -> bool:
    """Whether an offer changes imports alone: these follow the code that uses them, and seldom the other way round."""
    changed = _lines(offer.old) ^ _lines(offer.new)
    return bool(changed) and all(map(_IMPORT.match, changed))


def _brings_back(offer: Offer, past: Sequence[PastChange]) -> bool:
    """Whether all lines that an offer adds are lines that one of the changes has deleted."""
    added = _lines(offer.new) - _lines(offer.old)
    return bool(added) and any(added <= _lines(one.old) - _lines(one.new) for one in past)


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}


def window(change: RecentChange, count: int, row: int, *, made_for_it: bool) -> tuple[int, int]:
    """Returns the lines (first, and after the last) of ``count`` that are rewritten."""
    if made_for_it:
        first = max(min(row - WINDOW_ROWS // 2, count - WINDOW_ROWS), 0)
        return first, min(first + WINDOW_ROWS, count)
    return change.hunk.new_end, min(change.hunk.new_end + ROWS, count)


def around(path: str, change: RecentChange) -> PastChange:
    """Returns a change with some lines around it."""
    old, new, hunk = change.old.text.splitlines(), change.new.text.splitlines(), change.hunk
    before, after = old[max(hunk.start - CONTEXT_ROWS, 0) : hunk.start], old[hunk.end : hunk.end + CONTEXT_ROWS]
    texts = [*before, *old[hunk.start : hunk.end], *after], [*before, *new[hunk.new_start : hunk.new_end], *after]
    return PastChange(path, *map("\n".join, texts))


def _offers(
    uri: str, lines: Sequence[str], first: int, last: int, fill: str, log_probs: Sequence[float]
) -> Iterator[Offer]:
    before, after = lines[first:last], fill.splitlines(keepends=True)
    for hunk in hunks("".join(before), fill):
        # Where lines are deleted, the line after them says how sure the model is.
        rows = log_probs[hunk.new_start : max(hunk.new_end, hunk.new_start + 1)]
        old, new = "".join(before[hunk.start : hunk.end]), "".join(after[hunk.new_start : hunk.new_end])
        yield Offer(uri, first + hunk.start, first + hunk.end, old, new, probability(sum(rows)))


def probability(log_prob: float) -> float:
    """Returns the probability (0..1) that changed lines are right to the letter, by their log-probability (nats)."""
    return 1 / (1 + math.exp(-BIAS - OF_MODEL * max(log_prob, LEAST)))
