"""Finds the next edit: where a change would be followed, what would stand there, and whether that may be offered.

Where no rule says what follows, the model reads the last changes and rewrites the lines after the newest one. What it
changes there is offered where it is sure. On the real commits it changes too few places to fit weights; those below
separate its right ones from others.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import msgspec
from lsprotocol import types

from lacuna_lsp.connection import ServiceConnection
from lacuna_lsp.document import ClientDocument
from lacuna_model.core.odds import with_odds
from lacuna_model.core.params import DecodeOptions, FollowChanges, PastChange, Region
from lacuna_model.next_edit.changes import KINDS, RecentChange, TokenizedText, hunks, is_name
from lacuna_model.next_edit.following import ELSEWHERE, SURE, Candidate, applied, candidates, chosen
from lacuna_model.next_edit.renames import Where
from lacuna_model.text.diff import Hunk, common_ends
from lacuna_model.text.lines import line_starts, lines_of
from lacuna_server.wire.protocol import ServiceError

ACCEPTED = "lacuna.acceptedEdit"
ODDS_OF_MESSAGE = 5.0
# A suggestion of closing brackets alone is noise.
_TINY = re.compile(r"[\s)\]}>;,'\"`]*")
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


class Offer(msgspec.Struct, frozen=True):
    """Whole lines of a document that would become other lines.

    ``row`` and ``end_row`` are the lines (``end_row`` not included), ``old`` their text and ``new`` what would stand
    there. ``probability`` (0..1) is that of its least likely place.
    """

    uri: str
    row: int
    end_row: int
    old: str
    new: str
    probability: float

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the offer when the text around it changes."""
        return self.uri, self.old.strip(), self.new.strip()


class ShownOffer(msgspec.Struct, frozen=True):
    """An offer that the client has: its id, the version of its document, and the change that it follows.

    ``source`` is the uri of the document in which the change was made.
    """

    id: str
    offer: Offer
    version: int
    change: RecentChange
    source: str

    def item(self, document: ClientDocument) -> dict[str, Any]:
        """Returns the edit in the form of Copilot's server: whole lines without the last line ending, and their text.

        The command of an acceptance names the offer.
        """
        old, new = self.offer.old, self.offer.new
        end = next((end for end in ("\r\n", "\n", "\r") if old.endswith(end) and new.endswith(end)), "")
        old, new = old.removesuffix(end), new.removesuffix(end)
        start = document.offset(types.Position(self.offer.row, 0))
        return {
            "text": new,
            "range": document.span(start, start + len(old.encode())),
            "textDocument": {"uri": document.uri, "version": self.version},
            "command": {"title": "Accept the edit", "command": ACCEPTED, "arguments": [self.id]},
        }


def offers(
    change: RecentChange,
    uri: str,
    text: str,
    past: Sequence[PastChange],
    *,
    where: Where,
    told: Mapping[int, str] | None = None,
) -> list[Offer]:
    """Returns the places of a text that follow a change, as offers in order.

    ``where`` says how the text belongs to the change. Nothing is offered that reverts one of the ``past`` changes.
    ``told`` are messages of compilers and linters by line: one that names what was exchanged makes its line likelier.
    What stands in strings and in comments is offered apart from the code beside it.
    """
    tokens = change.new if where == "here" else TokenizedText(text)
    found = [_informed(text, one, told or {}) for one in candidates(change, tokens, where=where)]
    picked = chosen(found, ELSEWHERE if where == "elsewhere" else SURE)
    starts = [*accumulate(map(len, lines_of(text, keepends=True)), initial=0)]
    made: list[Offer] = []
    for kind in KINDS:
        own = [one for one in picked if one.kind == kind]

        def sure(hunk: Hunk, own: Sequence[Candidate] = own) -> float:
            low, high = starts[hunk.start], starts[hunk.end]
            inside = (one.probability for one in own if low <= one.place.end and one.place.start <= high)
            return min(inside, default=0.0)

        made += _made(uri, text, applied(text, own), 0, sure)
    made.sort(key=lambda offer: offer.row)
    return [offer for offer in made if is_worth(offer) and not reverts(offer, past)]


def _informed(text: str, one: Candidate, told: Mapping[int, str]) -> Candidate:
    """Returns a candidate with the odds that a message about its line gives it."""
    message = told.get(len(line_starts(text[: one.place.start])) - 1, "") if told else ""
    names = [name for name in one.place.pattern.literals if is_name(name) and len(name) > 1]
    if not any(re.search(rf"\b{re.escape(name)}\b", message) for name in names):
        return one
    return replace(one, probability=with_odds(one.probability, ODDS_OF_MESSAGE))


def _made(uri: str, before: str, after: str, row: int, sure: Callable[[Hunk], float]) -> Iterator[Offer]:
    """Yields what another text changes of a text that begins at a row; neighbouring lines are one offer."""
    old, new = lines_of(before, keepends=True), lines_of(after, keepends=True)
    for hunk in hunks(before, after):
        texts = "".join(old[hunk.start : hunk.end]), "".join(new[hunk.new_start : hunk.new_end])
        yield Offer(uri, row + hunk.start, row + hunk.end, *texts, sure(hunk))


def is_worth(offer: Offer) -> bool:
    """Whether an offer is more than blanks or closing brackets."""
    removed, written = _exchanged(offer.old.strip(), offer.new.strip())
    brackets = any(bracket in removed + written for bracket in ")]}")
    tiny = brackets and _TINY.fullmatch(removed) and _TINY.fullmatch(written)
    return not tiny and bool((removed + written).strip())


def reverts(offer: Offer, past: Sequence[PastChange]) -> bool:
    """Whether an offer would undo a change of its lines, or a part of it: take out what was written, put back the rest.

    Its lines are those that the change has made.
    """
    old = offer.old.strip()
    removed, written = _exchanged(old, offer.new.strip())
    for one in past:
        if old == one.new.strip():
            was_removed, was_written = _exchanged(one.old.strip(), one.new.strip())
            if removed in was_written and written in was_removed:
                return True
    return False


def _exchanged(old: str, new: str) -> tuple[str, str]:
    """What is removed of a text, and what is written in its place, where another text is made of it."""
    lead, tail = common_ends(old, new)
    return old[lead : len(old) - tail], new[lead : len(new) - tail]


async def near(
    engine: ServiceConnection, document: ClientDocument, change: RecentChange, past: Sequence[PastChange], row: int
) -> list[Offer]:
    """Returns what the model would change near a change, with probabilities; ``row`` is the cursor's line.

    Raises ServiceError where the model is not ready or does not answer in time.
    """
    lines = lines_of(document.text.decode(), keepends=True)
    first, last = window(change, len(lines), row, made_for_it=engine.follows_edits)
    if not "".join(lines[first:last]).strip():
        return []
    starts = [*accumulate((len(line.encode()) for line in lines), initial=0)]
    region = Region(starts[first], starts[last], max_tokens=MAX_TOKENS)
    task = FollowChanges((*past[-MAX_PAST:], around(document.path, change)))
    options = DecodeOptions(deadline_ms=int(PATIENCE_S * 1e3))
    result = await engine.infill(document, [region], task=task, options=options)
    if result.status == "deadline":
        raise ServiceError("overloaded", f"the model wrote no next edit within {PATIENCE_S:g} s")
    if result.status != "ok":
        return []
    log_probs = result.likelihoods[0]

    def sure(hunk: Hunk) -> float:
        # Where lines are deleted, the line after them says how sure the model is.
        return probability(sum(log_probs[hunk.new_start : max(hunk.new_end, hunk.new_start + 1)]))

    found = _made(document.uri, "".join(lines[first:last]), result.fills[0], first, sure)
    done = [*past, PastChange(document.path, *change.lines)]
    worth = [one for one in found if is_worth(one) and not _is_of_imports(one)]
    return [one for one in worth if not reverts(one, done) and not _brings_back(one, done)]


def _is_of_imports(offer: Offer) -> bool:
    """Whether an offer changes imports alone: these follow the code that uses them, and seldom the other way round."""
    changed = _stripped_lines(offer.old) ^ _stripped_lines(offer.new)
    return bool(changed) and all(map(_IMPORT.match, changed))


def _brings_back(offer: Offer, past: Sequence[PastChange]) -> bool:
    """Whether all lines that an offer adds are lines that one of the changes has deleted."""
    added = _stripped_lines(offer.new) - _stripped_lines(offer.old)
    return bool(added) and any(added <= _stripped_lines(one.old) - _stripped_lines(one.new) for one in past)


def _stripped_lines(text: str) -> set[str]:
    return {line.strip() for line in lines_of(text) if line.strip()}


def window(change: RecentChange, count: int, row: int, *, made_for_it: bool) -> tuple[int, int]:
    """Returns the lines (first, and after the last) of ``count`` that are rewritten."""
    if made_for_it:
        first = max(min(row - WINDOW_ROWS // 2, count - WINDOW_ROWS), 0)
        return first, min(first + WINDOW_ROWS, count)
    return change.hunk.new_end, min(change.hunk.new_end + ROWS, count)


def around(path: str, change: RecentChange) -> PastChange:
    """Returns a change with some lines around it."""
    old, new, hunk = lines_of(change.old.text), lines_of(change.new.text), change.hunk
    before, after = old[max(hunk.start - CONTEXT_ROWS, 0) : hunk.start], old[hunk.end : hunk.end + CONTEXT_ROWS]
    texts = [*before, *old[hunk.start : hunk.end], *after], [*before, *new[hunk.new_start : hunk.new_end], *after]
    return PastChange(path, *map("\n".join, texts))


def probability(log_prob: float) -> float:
    """Returns the probability (0..1) that changed lines are right to the letter, by their log-probability (nats)."""
    return 1 / (1 + math.exp(-BIAS - OF_MODEL * max(log_prob, LEAST)))
