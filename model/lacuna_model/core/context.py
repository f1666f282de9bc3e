"""What a model reads of a document: a window around the gaps as tokens, healed where a cursor cut the text."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lacuna_model.text.lines import indentation, within_character

Result = TypeVar("Result")

# Tokens that healing gives back at most. Words of four and more tokens rarely begin a longer token.
MAX_HEALED = 3
# Characters at the end of a text that decide how it is tokenized with what follows.
LOOKED_AT = 120


class TextTokenizer(Protocol):
    """The part of a tokenizer that the layout needs."""

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text; special tokens are never produced."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token; a byte-level token may be part of a UTF-8 character."""
        ...

    def is_begun(self, data: bytes) -> bool:
        """Whether ``data`` is the beginning of a longer token."""
        ...


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap number ``index`` of a layout.

    ``prefix`` are the last bytes before the gap, which the fill has to begin with (token healing): a text cut at a
    cursor rarely ends where a token of natural text would end.
    """

    index: int
    prefix: bytes = b""


@dataclass(frozen=True, slots=True)
class Answering:
    """How the only gap of a chat's prompt is written: as the assistant's message after the token ``after``.

    A token of ``fences`` at the start of a line ends it: the code block in which the text stands is closed there.
    With ``as_old``, it ends where the end of the text that stood in the gap is written again.
    """

    after: int
    fences: frozenset[int] = frozenset()
    as_old: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """Tokens between the prompt of the only gap and its fill; from the first on, rows are those of a ``kind``.

    The fill begins as the text that stands in the gap. Where both are the same again behind a difference, the rest of
    that text ends the fill.
    """

    kind: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The tokens of the text around n gaps: n + 1 ``segments``, without the healed bytes at the end of each.

    ``opening`` are the tokens before the first segment: snippets of other files, and the first tokens of the prompt
    format. ``olds`` has the tokens of the text that stands in each gap where they are drafts of its fill. With
    ``answering``, the prompt is a chat; with a ``header``, trained rows rewrite the text of the only gap.
    """

    opening: tuple[int, ...]
    segments: tuple[tuple[int, ...], ...]
    gaps: tuple[Gap, ...]
    olds: tuple[tuple[int, ...], ...] = ()
    answering: Answering | None = None
    header: Header | None = None

    def old(self, gap: int) -> tuple[int, ...]:
        """The tokens that stand in a gap and are drafts of its fill."""
        return self.olds[gap] if self.olds else ()


def finished(steps: Generator[object, None, Result]) -> Result:
    """Run a generator to its end and return its value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def heal(text: str, tokenizer: TextTokenizer) -> tuple[list[int], bytes]:
    """Split the text before a gap into context tokens and the healed bytes that the fill begins with.

    The healed bytes are those of the last token, or of up to ``MAX_HEALED`` tokens that a longer token begins with
    (``retu`` is `` ret`` + ``u``, but `` return`` is one token). Of white space only the last character is given back,
    since only that belongs to the token of the following word (as in ``\\n   `` + `` return``, ``\\n`` + ``\\n`` +
    ``def``). A blank line below an indented line is an exception, since it may be one token with the next indentation.
    A token that ends a character begun in another token (of an emoji, say) stays. Where a newline is a token of its
    own, that token is given back: a small model fills whole lines better if it writes the preceding newline itself.
    """
    if text.endswith("\n") and _is_whole(text[-LOOKED_AT:], tokenizer):
        *ids, last = tokenizer.encode(text)
        return ids, tokenizer.token_bytes(last)
    if _ends_in_space(text):
        return tokenizer.encode(text[:-1]), text[-1].encode()
    ids = tokenizer.encode(text)
    prefix, healed, count = b"", b"", 0
    for given in range(1, min(MAX_HEALED, len(ids)) + 1):
        prefix = tokenizer.token_bytes(ids[-given]) + prefix
        if not within_character(prefix, 0) and (given == 1 or tokenizer.is_begun(prefix)):
            healed, count = prefix, given
    return ids[: len(ids) - count], healed


def _is_whole(text: str, tokenizer: TextTokenizer) -> bool:
    """Whether the tokens of a text stay the same when a line follows, as indented as its last one or deeper."""
    last = text.rstrip().rpartition("\n")[2]
    ids = tokenizer.encode(text)
    return all(tokenizer.encode(f"{text}{indentation(last)}{more}x")[: len(ids)] == ids for more in ("", "    "))


def _ends_in_space(text: str) -> bool:
    """Whether a text ends in white space whose last character is not part of the preceding token."""
    if text.endswith("\n\n"):
        above = text[:-2].rpartition("\n")[2]
        return not above or not above[0].isspace()  # after an indented line the next one is likely indented too
    return text[-1:] in (" ", "\t") and text[-2:-1].isspace()


def lay_out(
    segments: Sequence[str], tokenizer: TextTokenizer, opening: Sequence[int] = (), *, heals: bool = True
) -> Layout:
    """Lay out ``segments``, the texts between the gaps: n gaps have n + 1 segments.

    A model that learnt to fill gaps between any two texts ``heals`` none of them.
    """
    healed = [heal(segment, tokenizer) if heals else (tokenizer.encode(segment), b"") for segment in segments[:-1]]
    ids = [*(body for body, _ in healed), tokenizer.encode(segments[-1])]
    gaps = tuple(Gap(index, prefix) for index, (_, prefix) in enumerate(healed))
    return Layout(tuple(opening), tuple(map(tuple, ids)), gaps)


# A token of code is about three bytes. Windows are first cut at this many bytes a token and then counted exactly.
BYTES_PER_TOKEN = 6
# The window's first line is found by its text, so that edits far above do not move the window.
SIGNATURE_BYTES = 160


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """Budgets in tokens for the text before the first gap, the text after the last, and snippets of other files."""

    before: int = 768
    after: int = 320
    snippets: int = 320

    @classmethod
    def of(cls, tokens: int) -> "WindowOptions":
        """So many ``tokens`` in all, in the proportions of the default."""
        usual = cls()
        total = usual.before + usual.after + usual.snippets
        before, after = max(usual.before * tokens // total, 1), usual.after * tokens // total
        return cls(before, after, max(tokens - before - after, 0))


class WindowChooser:
    """Chooses a document's window and keeps its start while the text before the gap grows.

    A window that moved with every keystroke would change every cached token before the gap. This one moves only when
    its text exceeds the budget by a third, or falls below half of it because the cursor moved up.
    """

    def __init__(self, options: WindowOptions) -> None:
        self._options = options
        self._start = 0
        self._signature = b""

    def before(self, text: bytes, tokenizer: TextTokenizer) -> bytes:
        """The end of ``text`` that the model reads; it begins where it began last time if that still fits."""
        budget, start = self._options.before, self._start
        reach = budget * 4 // 3 * BYTES_PER_TOKEN
        if not self._signature or not text.startswith(self._signature, start):
            # Edits have moved the window's first line. A short signature may occur anywhere. Of a long one the first
            # occurrence in reach counts, since lines may repeat.
            is_long = len(self._signature) >= SIGNATURE_BYTES
            start = text.find(self._signature, max(0, len(text) - reach)) if is_long else -1
        if start >= 0 and len(text) - start <= reach:
            count = len(tokenizer.encode(_characters(text[start:]).decode()))
            if count * 3 <= budget * 4 and (count * 2 >= budget or start == 0):
                self._start = start
                return text[start:]
        kept = _tail(text, budget, tokenizer)
        self._start = len(text) - len(kept)
        self._signature = kept[:SIGNATURE_BYTES]
        return kept

    def after(self, text: bytes, tokenizer: TextTokenizer) -> bytes:
        """The beginning of ``text`` that the model reads; it does not depend on the text before the gap."""
        budget = self._options.after
        head = _characters(text[: budget * BYTES_PER_TOKEN])
        while len(ids := tokenizer.encode(head.decode())) > budget:
            head = head[: _size(ids[:budget], tokenizer)]
            head = _characters(head[: head.rfind(b"\n") + 1] or head)
        return head


def _tail(text: bytes, budget: int, tokenizer: TextTokenizer) -> bytes:
    kept = text[-budget * BYTES_PER_TOKEN :]
    if len(kept) < len(text):
        kept = kept[kept.find(b"\n") + 1 :]
    kept = _characters(kept)
    while len(ids := tokenizer.encode(kept.decode())) > budget:
        start = len(kept) - _size(ids[-budget:], tokenizer)
        line = kept.find(b"\n", start - 1) + 1
        # A line longer than the budget is cut in the middle, at a character.
        kept = _characters(kept[line:] if 0 < line < len(kept) else kept[start:])
    return kept


def _size(tokens: Sequence[int], tokenizer: TextTokenizer) -> int:
    return sum(len(tokenizer.token_bytes(token)) for token in tokens)


def _characters(text: bytes) -> bytes:
    """A text without the cut characters at its ends."""
    return text.decode("utf-8", errors="ignore").encode()
