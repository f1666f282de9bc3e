"""Chooses the part of a long document that the model reads: a window around the gaps, in tokens, cut at line ends."""

from collections.abc import Sequence
from dataclasses import dataclass

from lacuna_model.core.context import TextTokenizer

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
        before, after = usual.before * tokens // total, usual.after * tokens // total
        return cls(before, after, tokens - before - after)


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
        """The offset of the window's first line now: unchanged, or moved by edits; -1 where it is not found."""
        if self._signature and text.startswith(self._signature, self._start):
            return self._start
        # A short signature may occur anywhere. Of a long one the first occurrence in reach counts, since lines may
        # repeat.
        if len(self._signature) < SIGNATURE_BYTES:
            return -1
        return text.find(self._signature, max(0, len(text) - self._reach))

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
