"""How likely a fill is right: in open delivery by the gate, in closed delivery by its log-probability alone.

A fill may be shown whole, up to the end of a line, or up to the end of a word of its first line. The gate judges each
of these beginnings: is it what the person would have typed? It is an ensemble of small trees over numbers from the
probabilities of the beginning's tokens and from the text around the gap, fitted at cursors of held-out packages by
``python -m tests.benchmarks fit-gate``. The sum of log-probabilities separates right fills from wrong ones but is
overconfident at both ends, so it is calibrated (Platt scaling, as in arXiv 1706.04599).
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import accumulate, pairwise
from math import log1p
from typing import Literal, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.constraint import UNKNOWN_LOG_PROB, TokenText
from lacuna_model.core.odds import with_odds
from lacuna_model.core.params import Region
from lacuna_model.decode.fill import Fill
from lacuna_model.text.diff import num_common

# What is read of the text on each side of a gap, in bytes.
NEAR = 6000
# So many words of a first line may end what is shown.
MAX_WORDS = 12
# Log-probabilities (nats) below the first, and margins (nats) above the second, make no difference.
LEAST, MOST = -20.0, 20.0
# A token less likely than this (nats) is unsure.
UNSURE = -0.7

_NAME = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"\s*(?:\w+|[^\w\s]+)")
_COMMENTS = ("#", "//", "*", "/*", '"""', "--")
# Groups of characters at the end of a beginning.
_GROUPS = {"dot": ".", "opener": "([{", "operator": "=<>!+-*/%&|^~?:", "quote": "\"'`", "closer": ")]}"}


@dataclass(frozen=True, slots=True)
class JudgedToken:
    """A token of a fill: its text, its log-probability (nats), and by how many nats the next best one was behind.

    The margin is 0 where another token was the model's best.
    """

    text: bytes
    log_prob: float
    margin: float


@dataclass(frozen=True, slots=True)
class JudgedFill:
    """A fill as the model wrote it: its tokens, and ``end``, the end-of-gap behind them, where the model was asked."""

    tokens: Sequence[JudgedToken]
    end: JudgedToken | None = None

    @classmethod
    def of(cls, fill: Fill, text: TokenText) -> Self:
        """What is written of a fill, without the healed text that its first tokens repeat."""
        found, healed = list[JudgedToken](), len(fill.gap.prefix)
        for place, token in enumerate(fill.tokens):
            piece = text.token_bytes(token)
            if healed < len(piece):
                found.append(_token(fill, place, piece[healed:]))
            healed = max(healed - len(piece), 0)
        end = len(fill.tokens)
        return cls(found, _token(fill, end, b"") if end in fill.log_probs else None)


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first ``end`` bytes of a fill, which end in line ``line``, with the line if it ``is_whole``."""

    end: int
    line: int
    is_whole: bool


def beginnings(fill: str) -> Iterator[Beginning]:
    """The beginnings of a fill that may be shown, shortest first: up to words of its first line, then up to lines."""
    first, *rest = fill.removesuffix("\n").split("\n")
    ends = [match.end() for match in _PART.finditer(first) if match.end() < len(first.rstrip())]
    for end in ends[:MAX_WORDS]:
        yield Beginning(len(first[:end].encode()), 0, is_whole=False)
    end = len(first.encode())
    yield Beginning(end, 0, is_whole=True)
    for number, line in enumerate(rest, start=1):
        end += 1 + len(line.encode())
        yield Beginning(end, number, is_whole=True)


class GapSurroundings:
    """The text around a gap: ``head`` and ``tail`` of its line, and the lines above and below."""

    def __init__(self, text: bytes, region: Region) -> None:
        before, after = text[max(region.start - NEAR, 0) : region.start], text[region.end : region.end + NEAR]
        *above, self.head = before.decode(errors="ignore").split("\n")
        self.tail, *below = after.decode(errors="ignore").split("\n")
        self._others = (*above, *below)
        self.above = next((line for line in reversed(above) if line.strip()), "")

    @cached_property
    def lines(self) -> frozenset[str]:
        """The other lines with text, without blanks around them."""
        return frozenset(filter(None, map(str.strip, self._others)))

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name occurs."""
        return Counter(name for text in (*self._others, self.head, self.tail) for name in _NAME.findall(text))

    @cached_property
    def starts(self) -> Counter[str]:
        """How many lines begin with each word."""
        return Counter(match[0] for match in map(_PART.match, self.lines) if match is not None)

    @cached_property
    def place(self) -> dict[str, float]:
        """The numbers of the gap, whatever its fill is."""
        head = self.head.strip()
        indent, over = (len(line) - len(line.lstrip()) for line in (self.head + "x", self.above))
        return {
            "head": log1p(len(head)),
            "in_comment": float(head.startswith(_COMMENTS)),
            "tail": float(bool(self.tail.strip())),
            "deeper": float(indent - over),
            "lines": log1p(len(self.lines)),
        }


def numbers(around: GapSurroundings, fill: str, written: JudgedFill, one: Beginning) -> dict[str, float]:
    """The numbers of a beginning of a fill, by name."""
    text = fill.encode()[: one.end].decode(errors="ignore")
    said = _of_tokens(written, one)
    whole = {f"whole_{name}": said[name] * one.is_whole for name in ("sum", "least", "end")}
    return around.place | said | whole | _of_text(around, text, one)


def _of_tokens(written: JudgedFill, one: Beginning) -> dict[str, float]:
    used, closing = _within(written, one)
    logs = [max(token.log_prob, LEAST) for token in used] or [LEAST]
    margins = [min(token.margin, MOST) for token in used] or [0.0]
    return {
        "sum": sum(logs),
        "least": min(logs),
        "mean": sum(logs) / len(logs),
        "first": logs[0],
        "last": logs[-1],
        "end": max(closing.log_prob, LEAST) if closing is not None else 0.0,
        "margin": log1p(min(margins)),
        "first_margin": log1p(margins[0]),
        "end_margin": log1p(min(closing.margin, MOST) if closing is not None else MOST),
        "tokens": log1p(len(used)),
        "unsure_tokens": float(sum(log < UNSURE for log in logs)),
    }


def _of_text(around: GapSurroundings, text: str, one: Beginning) -> dict[str, float]:
    shown = (around.head + text.split("\n", 1)[0]).strip()
    line = text.rsplit("\n", 1)[-1].strip() if one.line else shown
    names = _names(around.head, text)
    known = [around.names[name] for name in names]
    start = _PART.match(shown)
    return {
        "characters": log1p(len(text)),
        "words": log1p(len(names)),
        "is_whole": float(one.is_whole),
        **{f"at_end_{name}": float(text.rstrip().endswith(tuple(group))) for name, group in _GROUPS.items()},
        "stands_elsewhere": float(line in around.lines),
        "stands_above": float(shown == around.above.strip()),
        "unknown": float(known.count(0)),
        "rarest": log1p(min(known, default=0)),
        "begins_like": log1p(around.starts[start[0]]) if start is not None else 0.0,
    }


def _names(head: str, text: str) -> list[str]:
    """The names of a text behind the head of a line; the first one may begin in the head."""
    names = _NAME.findall(text)
    begun = re.search(r"\w*$", head)
    if names and begun is not None and text.startswith(names[0]):
        names[0] = begun[0] + names[0]
    return names


def _token(fill: Fill, place: int, text: bytes) -> JudgedToken:
    margin = fill.rivals[place][0] if place in fill.rivals else 0.0  # negative where a fork took the rival
    return JudgedToken(text, fill.log_probs.get(place, LEAST), max(margin, 0.0))


def _within(written: JudgedFill, one: Beginning) -> tuple[Sequence[JudgedToken], JudgedToken | None]:
    """The tokens of a beginning, and what ends it where it is whole: the line's end, or that of the fill."""
    position = 0
    for number, token in enumerate(written.tokens):
        if position >= one.end:
            return written.tokens[:number], token if one.is_whole else None
        position += len(token.text)
    return written.tokens, written.end if one.is_whole else None


# ``known``: the file declares a name outside of the gap, or the project, an imported package or the language does.
# ``nowhere``: a plain name that nobody declares, or a member that a known module has not. ``members``: a name behind
# the dot of an unknown receiver that none of them has.
NameKind = Literal["known", "nowhere", "members"]
UNKNOWN: tuple[NameKind, ...] = ("nowhere", "members")
# By which factor a name that nobody declares changes the odds that a fill is right. Of the names that people write 0.5
# to 1 % are called unknown, so some 2 % of the lines have one; of wrong suggestions a fifth has one. Where a known name
# was written instead, 2 of 21 lines are right (0.5B, 206 places).
NOWHERE = 0.1
# The log-odds that a text is right are CONSTANT + SLOPE * the log-probability (nats) of its tokens; fitted at gaps in
# whole files.
CONSTANT, SLOPE = 2.1334, 1.0307
# Lower sums make no difference.
LEAST_SUM = -60.0


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name that a fill uses and does not declare itself; its first use ends at the byte ``end`` of the fill.

    With ``is_instead``, it was written in the place of one that is nowhere.
    """

    name: str
    kind: NameKind
    end: int
    is_instead: bool = False


class Judgement(NamedTuple):
    """How likely a fill is right: up to the end of each of its ``lines``, and up to ``words`` of the first one.

    Of a word there are the characters up to its end, and the probability (0..1). Closed delivery judges no words, and
    tells the log-probability (nats) of each line, given the lines before. ``unknown`` is the number of names that the
    fill uses and nobody declares.
    """

    lines: tuple[float, ...]
    words: tuple[tuple[int, float], ...] = ()
    unknown: int = 0
    log_probs: tuple[float, ...] = ()

    def knowing(self, fill: str, uses: Iterable[NameUse]) -> Self:
        """The judgement that also knows which names the fill uses: each unknown one makes what holds it less likely.

        So does a known one that was written in its place: where the model means a name that nobody declares, it knows
        the code less well than elsewhere.
        """
        doubted = [one for one in uses if one.kind in UNKNOWN or one.is_instead]
        if not doubted:
            return self
        ends = [one.end for one in doubted]

        def less(sure: float, end: int) -> float:
            return with_odds(sure, NOWHERE ** sum(one <= end for one in ends))

        stops = accumulate(len(line.encode()) + 1 for line in fill.split("\n"))
        return self._replace(
            lines=tuple(less(sure, stop - 1) for sure, stop in zip(self.lines, stops, strict=False)),
            words=tuple((end, less(sure, len(fill[:end].encode()))) for end, sure in self.words),
            unknown=sum(one.kind in UNKNOWN for one in doubted),
        )


class Node(msgspec.Struct, frozen=True, array_like=True):
    """A node of a tree. Its child is ``yes`` where the number ``name`` is at most ``limit``, else ``no``.

    A leaf is its own child, and adds the log-odds ``value``.
    """

    name: int
    limit: float
    yes: int
    no: int
    value: float


class Gate(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """Trees over the numbers with these ``names``: the ``roots`` among all ``nodes``. Their log-odds are added."""

    names: tuple[str, ...]
    roots: tuple[int, ...]
    nodes: tuple[Node, ...]

    @cached_property
    def _table(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """The limits and values [nodes, 2] of the nodes, and their names and children [nodes, 3]."""
        return (
            np.array([(one.limit, one.value) for one in self.nodes]),
            np.array([(one.name, one.yes, one.no) for one in self.nodes], np.intp),
        )

    def probabilities(self, rows: Iterable[Mapping[str, float]]) -> list[float]:
        """The probability (0..1) that each beginning is right, whose numbers are given."""
        (limit, value), (name, yes, no) = (table.T for table in self._table)
        known = np.array([[row[name] for name in self.names] for row in rows])
        node, before = np.tile(self.roots, (len(known), 1)), np.empty(0)
        while not np.array_equal(node, before):
            goes = np.take_along_axis(known, name[node], axis=1) <= limit[node]
            node, before = np.where(goes, yes[node], no[node]), node
        found: list[float] = (1 / (1 + np.exp(-value[node].sum(axis=1)))).tolist()
        return found

    def judged(self, fill: str, written: JudgedFill, around: GapSurroundings) -> Judgement:
        """How likely a fill is right. A longer beginning is never likelier than a shorter one."""
        found = list(beginnings(fill))
        return self.of(fill, found, [numbers(around, fill, written, one) for one in found])

    def of(self, fill: str, found: Sequence[Beginning], rows: Iterable[Mapping[str, float]]) -> Judgement:
        """How likely a fill is right, by the numbers of the beginnings that were ``found`` in it."""
        pairs = list(zip(found, accumulate(self.probabilities(rows), min), strict=True))
        text = fill.encode()
        return Judgement(
            tuple(sure for one, sure in pairs if one.is_whole),
            tuple((len(text[: one.end].decode()), sure) for one, sure in pairs if not one.is_whole),
        )


@cache
def shipped() -> Gate:
    """The gate that ships with the package."""
    text = resources.files("lacuna_model.decode").joinpath("gate.json").read_bytes()
    return msgspec.json.decode(text, type=Gate)


def probability(log_prob: float) -> float:
    """The probability, in 0..1, that a text is right whose tokens have this summed log-probability."""
    return 1 / (1 + math.exp(-CONSTANT - SLOPE * log_prob))


def lines_right(delivered: str, fill: Fill, tokens: TokenText) -> Judgement:
    """How likely the ``delivered`` text of a fill is right up to the end of each of its lines.

    From the first byte where it differs from what the model wrote, the constraint wrote it, and ``UNKNOWN_LOG_PROB`` is
    added once.
    """
    text, prefix = delivered.encode(), len(fill.gap.prefix)
    pieces = [tokens.token_bytes(token) for token in fill.tokens]
    known = num_common(text, b"".join(pieces)[prefix:])
    # Behind the tokens the fill ends, which ends its last line, too.
    read = [*zip(accumulate(map(len, pieces), initial=-prefix), [*pieces, b"\n"], strict=True)]
    sums = [0.0]
    for end in accumulate(map(len, text.removesuffix(b"\n").split(b"\n")), lambda end, size: end + 1 + size):
        within = [place for place, (at, piece) in enumerate(read) if at < end or (at == end and b"\n" in piece)]
        total = sum(fill.log_probs.get(place, 0.0) for place in within)
        sums.append(max(total + (UNKNOWN_LOG_PROB if end > known else 0.0), LEAST_SUM))
    # Of lines after the least sum nothing is known.
    each = (LEAST_SUM if after <= LEAST_SUM + 1 else after - before for before, after in pairwise(sums))
    return Judgement(tuple(map(probability, sums[1:])), log_probs=tuple(each))
