"""From a document and its gaps to the tokens that a model reads: the text around the gaps, healed where it was cut."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Result = TypeVar("Result")

# Words of four and more tokens that one token may still come to are too few to look for.
MOST_HEALED = 3
# Characters at the end of a text that tell how it goes on.
LOOKED_AT = 120


class TextTokenizer(Protocol):
    """What the layout needs of a tokenizer."""

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token."""
        ...

    def is_begun(self, data: bytes) -> bool:
        """Whether ``data`` is the beginning of a longer token."""
        ...


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap number ``index`` of a layout.

    ``prefix`` are the last bytes before the gap. They are given back to the canvas (token healing), for a text cut at
    a cursor rarely ends where a token of natural text would end: the fill has to begin with them.
    """

    index: int
    prefix: bytes = b""


@dataclass(frozen=True, slots=True)
class Layout:
    """The tokens of the text around n gaps: n + 1 ``segments``, without what is healed at the end of each.

    ``opening`` are the tokens in front of the first segment: snippets of other files, and what the format begins with.
    """

    opening: tuple[int, ...]
    segments: tuple[tuple[int, ...], ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class UpdateCounts:
    """How many context tokens a request has, and how many of them had to be encoded."""

    total: int
    encoded: int


def finished(steps: Generator[object, None, Result]) -> Result:
    """What a generator returns that is run to its end in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def heal(text: str, tokenizer: TextTokenizer) -> tuple[list[int], bytes]:
    """The tokens in front of a gap, and the bytes at its end that no natural token would end at: the fill has them.

    They are those of the last token, or of as many more as one token may begin with (``retu`` is `` ret`` + ``u``, but
    `` return`` one token), so that a single token can begin with them. Of white space only the last character belongs
    to the token of the word behind it (as in ``\\n   `` + `` return``, ``\\n`` + ``\\n`` + ``def``), so only that is
    given back, unless a blank line is one token with the columns of the next. A token that ends a character begun in
    another (of an emoji, say) stays. Where a line ends in a token of its own, that is given back: a small model fills
    whole lines better where it says the end of the line in front itself.
    """
    if text.endswith("\n") and _is_whole(text[-LOOKED_AT:], tokenizer):
        *ids, last = tokenizer.encode(text)
        return ids, tokenizer.token_bytes(last)
    if _ends_in_space(text):
        return tokenizer.encode(text[:-1]), text[-1].encode()
    ids = tokenizer.encode(text)
    prefix, healed, count = b"", b"", 0
    for given in range(1, min(MOST_HEALED, len(ids)) + 1):
        prefix = tokenizer.token_bytes(ids[-given]) + prefix
        if prefix[0] & 0xC0 != 0x80 and (given == 1 or tokenizer.is_begun(prefix)):
            healed, count = prefix, given
    return ids[: len(ids) - count], healed


def _is_whole(text: str, tokenizer: TextTokenizer) -> bool:
    """Whether the tokens of a text stay what they are when a line follows, as indented as its last one or deeper."""
    last = text.rstrip().rpartition("\n")[2]
    indentation = last[: len(last) - len(last.lstrip())]
    ids = tokenizer.encode(text)
    return all(tokenizer.encode(f"{text}{indentation}{more}x")[: len(ids)] == ids for more in ("", "    "))


def _ends_in_space(text: str) -> bool:
    """Whether a text ends in white space whose last character is no part of the token in front of it."""
    if text.endswith("\n\n"):
        above = text[:-2].rpartition("\n")[2]
        return not above or not above[0].isspace()  # behind an indented line the next one is likely to be, too
    return text[-1:] in (" ", "\t") and text[-2:-1].isspace()


def lay_out(segments: Sequence[str], tokenizer: TextTokenizer, opening: Sequence[int] = ()) -> Layout:
    """Lay out ``segments``, the texts between the gaps: n gaps have n + 1 segments."""
    healed = [heal(segment, tokenizer) for segment in segments[:-1]]
    ids = [*(body for body, _ in healed), tokenizer.encode(segments[-1])]
    gaps = tuple(Gap(index, prefix) for index, (_, prefix) in enumerate(healed))
    return Layout(tuple(opening), tuple(map(tuple, ids)), gaps)
