"""Says how likely a place wants the change: by how much of its surroundings it shares with the place of the change.

A logistic regression over the features below, fitted on real commits (``python -m tests.benchmarks fit-ranking``).
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, cached_property
from importlib import resources
from typing import NamedTuple

import msgspec

from lacuna_model.core import work
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.patterns import Pattern
from lacuna_model.next_edit.places import MatchedPlace
from lacuna_model.next_edit.tokens import LINE_ENDS, Kind, TokenizedText, is_name, is_word
from lacuna_model.text.lines import line_starts

MAX_BITS = 40.0
NEAR_ROWS = 12
EXTRACTED = 0.6
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


class Agreement(NamedTuple):
    """How much the tokens on one side of two places agree.

    ``bits`` sums what the equal tokens say. They are ``whole`` if they reach the line's end. ``shape`` counts the
    tokens that are equal or both words.
    """

    bits: float
    whole: bool
    shape: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A place with the agreement of its surroundings on both sides."""

    place: MatchedPlace
    left: Agreement
    right: Agreement

    @property
    def context(self) -> float:
        """The bits of both sides."""
        return self.left.bits + self.right.bits


class Surroundings:
    """Compares places of a text with the place of a change, and says what is known of them."""

    def __init__(self, change: RecentChange, tokens: TokenizedText) -> None:
        self._change, self._tokens = change, tokens
        self._headers: dict[int, list[int]] = {}

    @cached_property
    def _starts(self) -> list[int]:
        return line_starts(self._tokens.text)

    def kind(self, place: MatchedPlace) -> Kind:
        """Returns what a place seems to stand in, from its line alone."""
        line = self._tokens.line_before(place.first)
        return "comment" if _REMARK.search(line) else _kind(self._tokens, place.first)

    def with_key(self, place: MatchedPlace) -> MatchedPlace:
        """Returns the place of a name that is a key, too, with that key before the new name."""
        name, at = self._tokens.texts[place.first], self._tokens.starts[place.first]
        return replace(place, start=at, end=at + len(name), text=f"{name}: {place.pattern.written[0]}")

    def seen(self, place: MatchedPlace) -> Seen:
        """Compares the surroundings of a place with those of the change."""
        work.spend(SEEN_NS)
        pattern, old, new = place.pattern, self._change.old, self._tokens
        left = _agreement(old, pattern.start, new, place.first, -1)
        return Seen(place, left, _agreement(old, pattern.end, new, place.last, 1))

    def features(self, own: Sequence[Seen]) -> Iterator[dict[str, float]]:
        """Yields what is known of each of the places of a pattern."""
        if not own:
            return
        pattern, old = own[0].place.pattern, self._change.old
        exchange, most = self._exchange(pattern), max(one.context for one in own)
        kind, member = _kind(old, pattern.start), _text(old, pattern.start - 1) in _MEMBERS
        alone = len(pattern.old) == len(pattern.new) == 1
        for one in own:
            its = _kind(self._tokens, one.place.first)
            yield exchange | {
                "one": 1.0,
                "left_whole": float(one.left.whole),
                "left_shape": one.left.shape / 4,
                "right_shape": one.right.shape / 4,
                "relative": (one.context + 1) / (most + 1),
                "many": math.log2(1 + len(own)) / 4,
                "many_alike": math.log2(1 + sum(other.context >= one.context for other in own)) / 4,
                "same_kind": float(kind == its),
                "prose": float(its == "comment" != kind),
                "member": float(alone and member != (_text(self._tokens, one.place.first - 1) in _MEMBERS)),
            }

    def of_extracted(self, one: Seen) -> float:
        """Returns the probability that the value of a new variable becomes its name, as it does below in its block."""
        row, start = self._row(one.place.start), self._change.hunk.new_start
        inside = set(self._enclosing(start)) <= {row, *self._enclosing(row)}
        return EXTRACTED if inside and start < row <= start + NEAR_ROWS else 0.0

    def _exchange(self, pattern: Pattern) -> dict[str, float]:
        """Returns what is known of all places of a pattern."""
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

    def _row(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def is_unrelated(self, one: Seen, features: dict[str, float]) -> bool:
        """Whether a place only has a name of the change: one that it keeps, or a short one in another block."""
        if not features["rename"]:
            return False
        if features["single"] and features["rename_stays"]:
            return True
        row, start = self._row(one.place.start), self._change.hunk.new_start
        inside = {start, *self._enclosing(start)} <= {row, *self._enclosing(row)}
        return len(one.place.pattern.literals[0]) < SHORT and not inside

    def _enclosing(self, row: int) -> list[int]:
        """Returns the lines that enclose a line by their indentation, the innermost first."""
        if row not in self._headers:
            self._headers[row] = _headers(self._tokens.lines, row)
        return self._headers[row]


def _headers(lines: Sequence[str], row: int) -> list[int]:
    found: list[int] = []
    if row >= len(lines):
        return found
    width = len(lines[row]) - len(lines[row].lstrip()) if lines[row].strip() else 10**6
    for above in range(row - 1, -1, -1):
        stripped = lines[above].lstrip()
        if stripped and not stripped.startswith((")", "}", "]")) and (own := len(lines[above]) - len(stripped)) < width:
            found.append(above)
            width = own
            if not own:
                break
    return found


def _agreement(old: TokenizedText, at: int, new: TokenizedText, there: int, step: int) -> Agreement:
    """Compares the tokens from ``at`` in one text with those from ``there`` in another, forwards or backwards."""
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
            return Agreement(min(bits, MAX_BITS), equal, shape)
    return Agreement(min(bits, MAX_BITS), False, shape)


def _text(tokens: TokenizedText, index: int) -> str:
    return tokens.texts[index] if 0 <= index < len(tokens.texts) else "\n"


def _declares(change: RecentChange, name: str) -> bool:
    """Whether the changed lines seem to declare a name."""
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
