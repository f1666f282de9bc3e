"""Says how likely a place wants the change: by how much of its surroundings it shares with the place of the change.

A logistic regression over the features below, fitted on real commits (``python -m tests.benchmarks fit-ranking``).
"""

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from importlib import resources

import msgspec

from lacuna_model.core import work
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.patterns import Kept, Literal_, Pattern, Variable
from lacuna_model.next_edit.places import MatchedPlace
from lacuna_model.next_edit.tokens import LINE_ENDS, Kind, TokenizedText, is_name, is_word
from lacuna_model.text.lines import line_starts, lines_of

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


@dataclass(frozen=True, slots=True)
class Agreement:
    """How much the tokens on one side of two places agree.

    ``bits`` sums what the equal ``tokens`` say. They are ``whole`` if they reach the line's end. ``shape`` counts the
    tokens that are equal or both words.
    """

    bits: float
    tokens: int
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
        self._exchanges: dict[Pattern, dict[str, float]] = {}

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of(self._tokens.text)

    @cached_property
    def _starts(self) -> list[int]:
        return line_starts(self._tokens.text)

    def kind(self, place: MatchedPlace) -> Kind:
        """Returns what a place seems to stand in, from its line alone."""
        line = self._tokens.line_before(place.first)
        return "comment" if _REMARK.search(line) else _kind(self._tokens, place.first)

    def with_key(self, place: MatchedPlace) -> MatchedPlace:
        """Returns the place of a name that is a key, too, with that key before the new name."""
        token = self._tokens.all[place.first]
        return replace(place, start=token.start, end=token.end, text=f"{token.text}: {place.pattern.written[0]}")

    def seen(self, place: MatchedPlace) -> Seen:
        """Compares the surroundings of a place with those of the change."""
        work.spend(SEEN_NS)
        pattern, old, new = place.pattern, self._change.old, self._tokens
        left = _agreement(old, pattern.start, new, place.first, -1)
        return Seen(place, left, _agreement(old, pattern.end, new, place.last, 1))

    def features(self, one: Seen, others: Sequence[Seen]) -> dict[str, float]:
        """Returns what is known of a place; ``others`` are all places of its pattern, itself included."""
        pattern = one.place.pattern
        if pattern not in self._exchanges:
            self._exchanges[pattern] = self._exchange(pattern)
        found = self._context(one, others) | self._exchanges[pattern] | self._where(one)
        rename, many = found["rename"], math.log2(1 + len(others)) / 4
        alike = sum(other.context >= one.context for other in others)
        found |= {
            "many": many,
            "many_alike": math.log2(1 + alike) / 4,
            "rename_block": rename * found["block"],
            "rename_bits": rename * found["pattern_bits"],
            "rename_known": rename * found["known"],
            "rename_many": rename * many,
            "insertion_16": found["insertion"] * float(found["context"] > 1.6),
            "insertion_whole": found["insertion"] * found["left_whole"] * found["right_whole"],
        }
        found[f"rule_{rule(one, found)}"] = 1.0
        return found

    def of_extracted(self, one: Seen) -> float:
        """Returns the probability that the value of a new variable becomes its name, as it does below in its block."""
        row, start = self._row(one.place.start), self._change.hunk.new_start
        inside = set(self._enclosing(start)) <= {row, *self._enclosing(row)}
        return EXTRACTED if inside and start < row <= start + NEAR_ROWS else 0.0

    def _context(self, one: Seen, others: Sequence[Seen]) -> dict[str, float]:
        bits = min(sum(map(self._tokens.bits, one.place.pattern.literals)), MAX_BITS) / 10
        context, left, right = one.context / 10, one.left, one.right
        return {
            "one": 1.0,
            "pattern_bits": bits,
            "pattern_12": float(bits > 1.2),
            "pattern_20": float(bits > 2.0),
            "context": context,
            "context_8": float(context > 0.8),
            "context_16": float(context > 1.6),
            "total_16": float(bits + context > 1.6),
            "total_26": float(bits + context > 2.6),
            "left_whole": float(left.whole),
            "right_whole": float(right.whole),
            "left_shape": left.shape / 4,
            "right_shape": right.shape / 4,
            "left_one": float(left.tokens > 0),
            "right_one": float(right.tokens > 0),
            "relative": (one.context + 1) / (max(other.context for other in others) + 1),
        }

    def _exchange(self, pattern: Pattern) -> dict[str, float]:
        old = self._change.old
        kept = {output.index for output in pattern.new if isinstance(output, Kept)}
        gone = [part.text for at, part in enumerate(pattern.old) if at not in kept and isinstance(part, Literal_)]
        written = pattern.written
        core = min(sum(map(self._tokens.bits, gone)), MAX_BITS) / 10
        whole = len(pattern.old) == len(gone) == len(written) == len(pattern.new) == 1
        rename = float(whole and is_name(gone[0]) and is_name(written[0]))
        names = [text for text in written if is_name(text)]
        before, after = "".join(gone)[:MAX_SIMILAR], "".join(written)[:MAX_SIMILAR]
        similar = SequenceMatcher(None, before, after, autojunk=False) if gone and written else None
        work.spend(SIMILAR_NS * (1 + len(before) * len(after)))
        return {
            "variables": float(min(pattern.variables, 4)),
            "collapsed": float(any(isinstance(part, Variable) and not part.single for part in pattern.old)),
            "longer": min(len(pattern.old), 12) / 4,
            "rename": rename,
            "rename_declared": rename and _declares(self._change, gone[0]),
            "rename_stays": rename and float(gone[0] in self._change.new.texts[slice(*self._change.new_span)]),
            "insertion": float(len(kept) == len(pattern.old)),
            "deletion": float(not written),
            "joint": float(pattern.kind == "joint"),
            "single": float(pattern.kind == "single"),
            "core": core,
            "core_12": float(core > 1.2),
            "known": math.log2(1 + min((len(old.places.get(text, ())) for text in names), default=0)) / 4,
            "similar": similar.ratio() if similar is not None else 0.0,
            "same_letters": float(_letters(gone) == _letters(written) != ""),
            "number": float(any(text[0].isdigit() for text in gone)),
            "wordless": float(not any(map(is_word, [*gone, *written]))),
        }

    def _where(self, one: Seen) -> dict[str, float]:
        place, old = one.place, self._change.old
        start = place.pattern.start
        before = old.texts[start - 1] if start else "\n"
        there = self._tokens.texts[place.first - 1] if place.first else "\n"
        mine, its = _kind(old, start), _kind(self._tokens, place.first)
        single = len(place.pattern.old) == len(place.pattern.new) == 1
        row, hunk = self._row(place.start), self._change.hunk
        rows = max(hunk.new_start - row, row - hunk.new_end + 1, 0)
        return {
            "near": float(rows <= NEAR_ROWS),
            "far": math.log2(1 + rows) / 8,
            "block": self._block_share(hunk.new_start, row),
            "same_kind": float(mine == its),
            "prose": float(its == "comment" != mine),
            "member": float(single and (before in _MEMBERS) != (there in _MEMBERS)),
        }

    def _row(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def _block_share(self, first: int, second: int) -> float:
        """Returns how many of the line ``first`` and the headers that enclose it enclose the line ``second``, 0..1."""
        mine, others = [first, *self._enclosing(first)], {second, *self._enclosing(second)}
        return sum(row in others for row in mine) / len(mine)

    def _enclosing(self, row: int) -> list[int]:
        """Returns the lines that enclose a line by their indentation, the innermost first."""
        if row not in self._headers:
            self._headers[row] = _headers(self._lines, row)
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
    bits, count, whole, shape, equal = 0.0, 0, False, 0, True
    for distance in range(FAR):
        mine = _text(old, at + distance if step == 1 else at - 1 - distance)
        other = _text(new, there + distance if step == 1 else there - 1 - distance)
        same = mine == other or (mine in LINE_ENDS and other in LINE_ENDS)
        equal = equal and same
        if equal:
            bits += new.bits(other)
            count += 1
        if not same and not (is_word(mine) and is_word(other)):
            break
        shape += 1
        if other in LINE_ENDS:
            whole = equal
            break
    return Agreement(min(bits, MAX_BITS), count, whole, shape)


def _text(tokens: TokenizedText, index: int) -> str:
    return tokens.texts[index] if 0 <= index < len(tokens.texts) else "\n"


def rule(one: Seen, of: dict[str, float]) -> str:
    """Returns the name of the rule of thumb that speaks for a place, or "none"."""
    pattern, context, relative = one.place.pattern, of["context"], of["relative"]
    bits, both = of["pattern_bits"], of["left_one"] * of["right_one"]
    if of["rename"]:
        return _rename_rule(pattern.literals[0], of)
    if of["single"]:
        sure = both and context >= 2.2 and relative >= 0.6 and of["core"] >= 2.0 and pattern.written
        return "single" if sure else "none"
    if of["variables"]:
        sure = bits >= 1.4 and bits + context >= 2.2 and relative >= 0.6 and of["many"] < 1
        return "variable" if sure and of["many_alike"] <= 0.8 else "none"
    if of["insertion"]:
        sure = both and bits + context >= 2.0 and relative >= 0.6 and of["many_alike"] <= 0.6
        return "insertion" if sure or (of["left_whole"] and of["right_whole"]) else "none"
    if of["core"] >= 2.0:
        return "much"
    if both and bits + context >= 2.0 and relative >= 0.6:
        return "context"
    return "pattern" if bits >= 1.2 and relative >= 0.5 else "none"


def _rename_rule(old: str, of: dict[str, float]) -> str:
    both = of["left_one"] * of["right_one"]
    plain = old.isalpha() and old.islower()
    if of["rename_stays"]:
        return "rename_ambiguous" if both and of["context"] >= 1.6 and of["relative"] >= 0.8 else "none"
    if of["member"] or (plain and not of["same_kind"]):
        return "none"
    if len(old) < SHORT:
        near = both and of["context"] >= 1.6 and of["relative"] >= 0.8 and of["block"] >= 0.6
        return "rename_short" if near else "none"
    if of["rename_declared"] and not of["single"]:
        return "rename_declared"
    if (of["similar"] >= 0.7 and not plain) or of["same_letters"]:
        return "rename_spelling"
    if of["known"] == 0 or of["pattern_bits"] >= 0.9:
        return "rename_rare" if of["relative"] >= 0.3 or of["block"] >= 0.99 else "none"
    return "rename_context" if both and of["context"] >= 0.8 and of["relative"] >= 0.6 else "none"


def _letters(texts: Sequence[str]) -> str:
    return "".join(texts).replace("_", "").lower()


def _declares(change: RecentChange, name: str) -> float:
    """Whether the changed lines seem to declare a name."""
    text = lines_of(change.old.text)[change.hunk.start : change.hunk.end]
    lines = [line for line in text if re.search(rf"\b{re.escape(name)}\b", line)]
    assigned = re.compile(rf"^\s*(?:[\w,\s*]*\b)?{re.escape(name)}\b[\w\s,\[\]:*.]*(?::=|=(?!=))")
    return float(any(_DECLARES.search(line) or assigned.match(line) for line in lines))


def _kind(tokens: TokenizedText, index: int) -> Kind:
    """Returns whether a token seems to stand in a comment, a string or code, from its line alone."""
    line = tokens.line_before(index)
    if _COMMENT.match(line):
        return "comment"
    return "string" if any(line.count(quote) % 2 for quote in ('"', "`", "'")) else "code"


def is_unrelated(one: Seen, features: dict[str, float]) -> bool:
    """Whether a place only has a name of the change: a short one, in another function, or one that the change keeps."""
    if not features["rename"]:
        return False
    if features["single"] and features["rename_stays"]:
        return True
    short = len(one.place.pattern.literals[0]) < SHORT
    return bool(short and features["block"] < 1 and "rule_none" in features)


def probability(features: dict[str, float]) -> float:
    """Returns the probability (0..1) that a place wants the change."""
    weights = _weights()
    total = sum(weights.get(name, 0.0) * value for name, value in features.items())
    return 1 / (1 + math.exp(-max(min(total, 30.0), -30.0)))


def _weights() -> dict[str, float]:
    if not _WEIGHTS:
        data = resources.files("lacuna_model.next_edit").joinpath("weights.json").read_bytes()
        _WEIGHTS.update(msgspec.json.decode(data, type=dict[str, float]))
    return _WEIGHTS


_WEIGHTS: dict[str, float] = {}
