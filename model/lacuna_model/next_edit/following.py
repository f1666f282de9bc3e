"""Puts the rules together: the places that would follow a change, each with its new text and a probability.

A place is likely by how much of its surroundings it shares with the place of the change: a logistic regression over the
features below, fitted on real commits (``python -m tests.benchmarks fit-ranking``).
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, cached_property
from importlib import resources
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from lacuna_model.core import work
from lacuna_model.next_edit.changes import LINE_ENDS, Kind, RecentChange, TokenizedText, is_name, is_word
from lacuna_model.next_edit.patterns import Pattern, extracted, patterns
from lacuna_model.next_edit.places import MatchedPlace, places
from lacuna_model.next_edit.renames import Related, Renames, Where
from lacuna_model.text.lines import first_of, line_starts, splice

SURE = 0.5  # what is less likely is not offered
PREVIEWED = 0.42  # the same where the user has asked for all places, and sees them before they are changed
ELSEWHERE = 0.55  # the same in other files than that of the change
# What stands in the scope of a variable whose declaration was renamed, and the value of a new variable in its block.
RENAMED, EXTRACTED = 0.95, 0.6
MAX_CANDIDATES, MAX_PLACES = 600, 200  # in all, and of one pattern
MAX_WORK_S = 3.0  # of work for one change
MAX_BITS = 40.0
NEAR_ROWS = 12
MAX_SIMILAR = 300  # characters of the old and the new tokens that are compared
# The work, in nominal nanoseconds: of the comparison of a place's surroundings, and of two characters.
SEEN_NS, SIMILAR_NS = 100_000, 50
SHORT = 3  # names with fewer characters mean something else in every function
FAR = 16  # tokens on each side that are compared
_MEMBERS = frozenset((".", "?.", "::", "->"))
_DECLARES = re.compile(
    r"\b(import|from|use|using|require|def|class|func|function|fn|type|interface|struct|enum|const|let|var|val|package)\b"
)
_COMMENT = re.compile(r"\s*(//|#|\*|/\*|--|<!--)")
# A comment behind code.
_REMARK = re.compile(r"\s(//|#|/\*|--|<!--)\s")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place that may want the change, with the ``probability`` (0..1) that it does, by the rules.

    Places of different ``kind`` are no single edit: a name in a string or a comment may mean something else.
    """

    place: MatchedPlace
    probability: float
    features: dict[str, float]
    kind: Kind = "code"


def candidates(
    change: RecentChange, tokens: TokenizedText, *, where: Where = "here", until: int | None = None
) -> list[Candidate]:
    """Returns the places of a text that may follow a change; ``where`` says how the text belongs to the change.

    In another text, none stands in a line that the change itself has written. The search ends at the mark ``until`` of
    this thread's work, or after ``MAX_WORK_S``.
    """
    until = work.mark(MAX_WORK_S) if until is None else until
    surroundings, renames, here = Surroundings(change, tokens), Renames(change, tokens, where), where == "here"
    avoided = [change.new_span] if here else []
    found: list[Candidate] = []
    for pattern in chain(patterns(change), extracted(change) if here else ()):
        words = [text for text in pattern.literals if is_word(text)]
        if not (words or here) or not all(word in tokens.text for word in words):
            continue  # without splitting the text into tokens
        matched = ((place, renames.of(place)) for place in places(pattern, tokens, avoided, until=until))
        meant = ((place, related) for place, related in matched if related is not None)
        found += surroundings.rated(islice(meant, MAX_PLACES))
        if len(found) > MAX_CANDIDATES or work.reached(until):
            break
    if here:
        return found
    written = {line.rstrip("\r\n") for line in change.new.lines[change.hunk.new_start : change.hunk.new_end]}
    return [one for one in found if first_of(tokens.text[tokens.line_start(one.place.start) :]) not in written]


class _Seen(NamedTuple):
    """A place, and how its surroundings agree with those of the change.

    ``bits`` sums what the equal tokens on both sides say. On the left they are ``whole`` if they reach the line's end.
    ``left`` and ``right`` count the tokens there that are equal or both words.
    """

    place: MatchedPlace
    related: Related
    bits: float
    whole: bool
    left: int
    right: int


class Surroundings:
    """Compares places of a text with the place of a change, and says how likely they want it."""

    def __init__(self, change: RecentChange, tokens: TokenizedText) -> None:
        self._change, self._tokens = change, tokens
        self._enclosing = cache(lambda row: _headers(tokens.lines, row))

    @cached_property
    def _starts(self) -> list[int]:
        return line_starts(self._tokens.text)

    def rated(self, found: Iterable[tuple[MatchedPlace, Related]]) -> Iterator[Candidate]:
        """Yields candidates for the places of one pattern, but for those that only have a name of the change."""
        own = [self._seen(*one) for one in found]
        for (place, related, *_), features in zip(own, self._features(own), strict=True):
            if not related.is_renamed and self._is_unrelated(place, features):
                continue
            likely = self._of_extracted(place) if place.pattern.kind == "extracted" else probability(features)
            likely = max(likely, RENAMED) if related.is_renamed else likely
            whole = self._with_key(place) if related.shorthand else place
            remark = _REMARK.search(self._tokens.line_before(place.first))
            kind = related.kind or ("comment" if remark else _kind(self._tokens, place.first))
            yield Candidate(whole, likely, features, kind)

    def _with_key(self, place: MatchedPlace) -> MatchedPlace:
        """The place of a name that is a key, too, with that key before the new name."""
        name, at = self._tokens.texts[place.first], self._tokens.starts[place.first]
        return replace(place, start=at, end=at + len(name), text=f"{name}: {place.pattern.written[0]}")

    def _seen(self, place: MatchedPlace, related: Related) -> _Seen:
        work.spend(SEEN_NS)
        pattern, old, new = place.pattern, self._change.old, self._tokens
        bits, whole, left = _agreement(old, pattern.start, new, place.first, -1)
        more, _, right = _agreement(old, pattern.end, new, place.last, 1)
        return _Seen(place, related, bits + more, whole, left, right)

    def _features(self, own: Sequence[_Seen]) -> Iterator[dict[str, float]]:
        """Yields what is known of each of the places of a pattern."""
        if not own:
            return
        pattern, old = own[0].place.pattern, self._change.old
        exchange, most = self._exchange(pattern), max(one.bits for one in own)
        kind, member = _kind(old, pattern.start), _text(old, pattern.start - 1) in _MEMBERS
        alone = len(pattern.old) == len(pattern.new) == 1
        for one in own:
            its = _kind(self._tokens, one.place.first)
            yield exchange | {
                "one": 1.0,
                "left_whole": float(one.whole),
                "left_shape": one.left / 4,
                "right_shape": one.right / 4,
                "relative": (one.bits + 1) / (most + 1),
                "many": math.log2(1 + len(own)) / 4,
                "many_alike": math.log2(1 + sum(other.bits >= one.bits for other in own)) / 4,
                "same_kind": float(kind == its),
                "prose": float(its == "comment" != kind),
                "member": float(alone and member != (_text(self._tokens, one.place.first - 1) in _MEMBERS)),
            }

    def _of_extracted(self, place: MatchedPlace) -> float:
        """The probability that the value of a new variable becomes its name, as it does below in its block."""
        row, start = self._row(place), self._change.hunk.new_start
        inside = {*self._enclosing(start)} <= {row, *self._enclosing(row)}
        return EXTRACTED if inside and start < row <= start + NEAR_ROWS else 0.0

    def _exchange(self, pattern: Pattern) -> dict[str, float]:
        """What is known of all places of a pattern."""
        gone, written = list(pattern.gone.values()), pattern.written
        whole = len(pattern.old) == len(gone) == len(written) == len(pattern.new) == 1
        rename = whole and is_name(gone[0]) and is_name(written[0])
        before, after = "".join(gone)[:MAX_SIMILAR], "".join(written)[:MAX_SIMILAR]
        similar = SequenceMatcher(None, before, after, autojunk=False) if gone and written else None
        work.spend(SIMILAR_NS * (1 + len(before) * len(after)))
        return {
            "pattern_bits": min(sum(map(self._tokens.bits, pattern.literals)), MAX_BITS) / 10,
            "variables": float(min(pattern.variables, 4)),
            "longer": min(len(pattern.old), 12) / 4,
            "rename": float(rename),
            "rename_declared": float(rename and _declares(self._change, gone[0])),
            "rename_stays": float(rename and gone[0] in self._change.new.texts[slice(*self._change.new_span)]),
            "single": float(pattern.kind == "single"),
            "similar": similar.ratio() if similar is not None else 0.0,
            "number": float(any(text[0].isdigit() for text in gone)),
            "wordless": float(not any(map(is_word, [*gone, *written]))),
        }

    def _row(self, place: MatchedPlace) -> int:
        return bisect_right(self._starts, place.start) - 1

    def _is_unrelated(self, place: MatchedPlace, features: dict[str, float]) -> bool:
        """Whether a place only has a name of the change: one that it keeps, or a short one in another block."""
        if not features["rename"]:
            return False
        if features["single"] and features["rename_stays"]:
            return True
        row, start = self._row(place), self._change.hunk.new_start
        inside = {start, *self._enclosing(start)} <= {row, *self._enclosing(row)}
        return len(place.pattern.literals[0]) < SHORT and not inside


def _headers(lines: Sequence[str], row: int) -> list[int]:
    """The lines that enclose a line by their indentation, the innermost first."""
    found = list[int]()
    if row >= len(lines):
        return found
    width = len(lines[row]) - len(lines[row].lstrip()) if lines[row].strip() else 10**6
    for above in range(row - 1, -1, -1):
        bare = lines[above].lstrip()
        if bare and not bare.startswith((")", "}", "]")) and (own := len(lines[above]) - len(bare)) < width:
            found.append(above)
            width = own
            if not own:
                break
    return found


def _agreement(old: TokenizedText, at: int, new: TokenizedText, there: int, step: int) -> tuple[float, bool, int]:
    """Compares the tokens from ``at`` in one text with those from ``there`` in another, forwards or backwards.

    Returns the bits of the equal ones, whether they reach the line's end, and how many are equal or both words.
    """
    bits, shape, equal = 0.0, 0, True
    for distance in range(FAR):
        by = distance if step == 1 else -1 - distance
        mine, other = _text(old, at + by), _text(new, there + by)
        same = mine == other or (mine in LINE_ENDS and other in LINE_ENDS)
        equal = equal and same
        bits += new.bits(other) if equal else 0.0
        if not same and not (is_word(mine) and is_word(other)):
            break
        shape += 1
        if other in LINE_ENDS:
            return min(bits, MAX_BITS), equal, shape
    return min(bits, MAX_BITS), False, shape


def _text(tokens: TokenizedText, index: int) -> str:
    return tokens.texts[index] if 0 <= index < len(tokens.texts) else "\n"


def _declares(change: RecentChange, name: str) -> bool:
    text = change.old.lines[change.hunk.start : change.hunk.end]
    lines = [line for line in text if re.search(rf"\b{re.escape(name)}\b", line)]
    assigned = re.compile(rf"^\s*(?:[\w,\s*]*\b)?{re.escape(name)}\b[\w\s,\[\]:*.]*(?::=|=(?!=))")
    return any(_DECLARES.search(line) or assigned.match(line) for line in lines)


def _kind(tokens: TokenizedText, index: int) -> Kind:
    """Returns whether a token seems to stand in a comment, a string or code, from its line alone."""
    line = tokens.line_before(index)
    if _COMMENT.match(line):
        return "comment"
    return "string" if any(line.count(quote) % 2 for quote in ('"', "`", "'")) else "code"


def probability(features: dict[str, float]) -> float:
    """Returns the probability (0..1) that a place wants the change."""
    weights = _weights()
    total = sum(weights.get(name, 0.0) * value for name, value in features.items())
    return 1 / (1 + math.exp(-max(min(total, 30.0), -30.0)))


@cache
def _weights() -> dict[str, float]:
    data = resources.files("lacuna_model.next_edit").joinpath("weights.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, float])


def chosen(found: Sequence[Candidate], least: float = SURE) -> list[Candidate]:
    """Returns the likely candidates, in order and without overlaps.

    Where a more specific pattern covers a likely candidate, its place is taken.
    """
    taken: list[Candidate] = []
    for one in sorted(found, key=lambda one: -one.probability):
        if one.probability < least:
            break
        if any(_overlap(one.place, other.place) for other in taken):
            continue
        wider = [
            other
            for other in found
            if _covers(other.place, one.place) and not any(_overlap(other.place, third.place) for third in taken)
        ]
        best = max(wider, key=lambda other: len(other.place.pattern.old), default=one)
        taken.append(replace(best, probability=max(one.probability, best.probability)))
    return sorted(taken, key=lambda one: one.place.start)


def _overlap(one: MatchedPlace, other: MatchedPlace) -> bool:
    return one.first < other.last and other.first < one.last


def _covers(wide: MatchedPlace, one: MatchedPlace) -> bool:
    """Whether a place of an exact pattern with more tokens contains another."""
    return (
        wide.start <= one.start
        and one.end <= wide.end
        and len(wide.pattern.old) > len(one.pattern.old)
        and not wide.pattern.variables
        and bool(wide.pattern.written)
    )


def applied(text: str, found: Sequence[Candidate]) -> str:
    """Returns a text with the changes of all candidates, which must be in order and disjoint."""
    return splice(text, [(one.place.start, one.place.end, one.place.text) for one in found])
