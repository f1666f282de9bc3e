"""Which part of a long document the model reads: a window around the gaps, measured in tokens, at line borders."""

from collections.abc import Sequence
from dataclasses import dataclass

from lacuna_model.core.context import TextTokenizer

# A token of code is about three bytes; windows are cut from this many bytes a token and then counted exactly.
BYTES_PER_TOKEN = 6
# The window's first line is looked for by its text, so that edits far above do not move the window.
SIGNATURE_BYTES = 160


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """Token budgets of the text before the first gap and after the last, and of the snippets of other files."""

    before: int = 768
    after: int = 320
    snippets: int = 320


class Window:
    """Chooses a document's window and keeps it where it is while the text before the gap grows.

    A window that moved with every keystroke would change every token of *before*; this one stays until the text
    in it outgrows the budget by a third, or is less than half of it because the cursor went up.
    """

    def __init__(self, options: WindowOptions) -> None:
        self._options = options
        self._start = 0
        self._signature = b""

    def before(self, text: bytes, tokenizer: TextTokenizer) -> bytes:
        """The end of ``text`` that is read: the same beginning as last time if that still fits."""
        budget = self._options.before
        start = self._find(text)
        if start >= 0 and len(text) - start <= self._reach:
            count = len(tokenizer.encode(_characters(text[start:]).decode()))
            if count * 3 <= budget * 4 and (count * 2 >= budget or start == 0):
                self._start = start
                return text[start:]
        kept = _tail(text, budget, tokenizer)
        self._start = len(text) - len(kept)
        self._signature = kept[:SIGNATURE_BYTES]
        return kept

    @property
    def _reach(self) -> int:
        return self._options.before * 4 // 3 * BYTES_PER_TOKEN

    def _find(self, text: bytes) -> int:
        """Where the window's first line stands now, -1 where it does not: at the same offset, or edits moved it."""
        if self._signature and text.startswith(self._signature, self._start):
            return self._start
        # A short signature may stand anywhere; of a long one the first in reach is right, for lines may repeat.
        if len(self._signature) < SIGNATURE_BYTES:
            return -1
        return text.find(self._signature, max(0, len(text) - self._reach))

    def after(self, text: bytes, tokenizer: TextTokenizer) -> bytes:
        """The beginning of ``text`` that is read; it depends on nothing else, so typing before it changes nothing."""
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
    """A text without the parts of characters that it was cut in."""
    return text.decode("utf-8", errors="ignore").encode()
