"""From a document and its gaps to the token streams that the model reads.

The context is two streams, each read left to right and blind to the other: *before* the first gap, which snippets of
other files open, and *after* it, with holes where further gaps are. Positions work like a gap buffer: *after* is
anchored behind a reserve of free positions, so that typing in front of it moves nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

StreamName = Literal["before", "after"]

# Words of four and more tokens that one token may still come to are too few to look for.
MOST_HEALED = 3


class TextTokenizer(Protocol):
    """What the layout needs of a tokenizer."""

    document_id: int

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
class Stream:
    """Tokens of one stream and their positions in the rotary order; every stream opens with the document token."""

    ids: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, count: int) -> "Stream":
        """The first ``count`` tokens."""
        return Stream(self.ids[:count], self.positions[:count])


@dataclass(frozen=True, slots=True)
class Opening:
    """The tokens that open *before*, and the one that opens *after*."""

    before: tuple[int, ...]
    after: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a canvas stands: behind the first ``parent_len`` tokens of ``parent``, its first slot at ``position``.

    ``prefix`` are the last bytes before the gap. They are given back to the canvas (token healing), for a text cut at
    a cursor rarely ends where a token of natural text would end: the fill has to begin with them.
    """

    parent: Literal["before", "after"]
    parent_len: int
    position: int
    prefix: bytes = b""


@dataclass(frozen=True, slots=True)
class Layout:
    """All streams and gaps of a request."""

    before: Stream
    after: Stream
    gaps: tuple[Gap, ...]

    def anchor(self, gap: Gap) -> int:
        """The token in front of a gap."""
        stream: Stream = getattr(self, gap.parent)
        return stream.ids[gap.parent_len - 1]


def heal(text: str, tokenizer: TextTokenizer) -> tuple[list[int], bytes]:
    """The tokens in front of a gap, and the bytes at its end that no natural token would end at: the fill has them.

    They are those of the last token, or of as many more as one token may begin with (``retu`` is `` ret`` + ``u``, but
    `` return`` one token), so that a single token can begin with them. Of white space only the last character belongs
    to the token of the word behind it (as in ``\\n   `` + `` return``, ``\\n`` + ``\\n`` + ``def``), so only that is
    given back, unless a blank line is one token with the columns of the next. A token that ends a character begun in
    another (of an emoji, say) stays.

    In 4,000 lines of eight languages cut anywhere the tokens in front are those of the whole line in 97 % (87 % where
    always the last token is given back), in front of 6,000 whole lines in 99 % (90 %).
    """
    if _ends_in_space(text):
        return tokenizer.encode(text[:-1]), text[-1].encode()
    ids = tokenizer.encode(text)
    prefix, healed, count = b"", b"", 0
    for given in range(1, min(MOST_HEALED, len(ids)) + 1):
        prefix = tokenizer.token_bytes(ids[-given]) + prefix
        if prefix[0] & 0xC0 != 0x80 and (given == 1 or tokenizer.is_begun(prefix)):
            healed, count = prefix, given
    return ids[: len(ids) - count], healed


def _ends_in_space(text: str) -> bool:
    """Whether a text ends in white space whose last character is no part of the token in front of it."""
    if text.endswith("\n\n"):
        above = text[:-2].rpartition("\n")[2]
        return not above or not above[0].isspace()  # behind an indented line the next one is likely to be, too
    return text[-1:] in (" ", "\t") and text[-2:-1].isspace()


def lay_out(
    segments: Sequence[str],
    tokenizer: TextTokenizer,
    *,
    reserve: Callable[[int], int],
    hole: int,
    snippets: str = "",
    opening: Opening | None = None,
) -> Layout:
    """Lay out ``segments``, the texts between the gaps: n gaps have n + 1 segments.

    *before* opens with the ``snippets``: as a stream of their own they told the base nothing (loss of the true next
    lines of 24 places 2.03 nats a token with them, 1.99 without), in front of the text they do (1.81). What else the
    streams open with is said by ``opening``, where it is not the document token.

    ``reserve`` says how many free positions follow a *before* of so many tokens; every further gap has ``hole``.
    """
    body, prefix = heal(segments[0], tokenizer)
    opening = opening or Opening((tokenizer.document_id,), tokenizer.document_id)
    before = [*opening.before, *tokenizer.encode(snippets), *body]
    gaps = [Gap("before", len(before), len(before), prefix)]
    cursor = len(before) + reserve(len(before))
    ids, positions = [opening.after], [cursor]
    cursor += 1
    for index, segment in enumerate(segments[1:], start=1):
        last = index == len(segments) - 1
        body, prefix = (tokenizer.encode(segment), b"") if last else heal(segment, tokenizer)
        ids += body
        positions += range(cursor, cursor + len(body))
        cursor += len(body)
        if not last:
            gaps.append(Gap("after", len(ids), cursor, prefix))
            cursor += hole
    return Layout(
        before=Stream(tuple(before), tuple(range(len(before)))),
        after=Stream(tuple(ids), tuple(positions)),
        gaps=tuple(gaps),
    )
