"""What speaks for and against the beginnings of a fill: numbers by which the gate judges them.

A fill may be shown whole, up to the end of a line, or up to the end of a word of its first line. Each of these
beginnings has its numbers: from the probabilities of its tokens, and from the text around the gap.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log1p
from typing import Self

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import Region
from lacuna_model.decode.fill import Fill

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
