"""How likely a fill is right: in open delivery by the gate, in closed delivery by its log-probability alone.

The gate judges each beginning of a suggestion: is it what the person would have typed? It is an ensemble of small trees
over the numbers of :mod:`.evidence`, fitted at cursors of held-out packages by ``python -m tests.benchmarks fit-gate``.
The sum of log-probabilities separates right fills from wrong ones but is overconfident at both ends, so it is
calibrated (Platt scaling, as in arXiv 1706.04599).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.constraint import UNKNOWN_LOG_PROB, TokenText
from lacuna_model.core.odds import with_odds
from lacuna_model.decode.evidence import Beginning, GapSurroundings, JudgedFill, beginnings, numbers
from lacuna_model.decode.fill import Fill
from lacuna_model.text.diff import num_common

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
