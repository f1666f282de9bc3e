"""Tokens as bytes: a vocabulary index, text to tokens, and UTF-8 characters that a token leaves incomplete."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from functools import cached_property

from lacuna_model.core.constraint import TokenText

_RECENT: "deque[ByteVocabulary]" = deque(maxlen=2)


class ByteVocabulary:
    """The byte view of a tokenizer; ``vocabulary_of`` shares one among all constraints of a tokenizer.

    The sorted index is a byte trie in its flattest form: the tokens with a prefix are one slice of it.
    """

    def __init__(self, tokens: TokenText) -> None:
        self.tokens = tokens
        self.eog_id = tokens.eog_id
        self._encoded: dict[bytes, tuple[int, ...]] = {}

    def text(self, tokens: Sequence[int]) -> bytes:
        """The bytes of a run of tokens."""
        return self.tokens.decode_bytes(tokens)

    def piece(self, token: int) -> bytes:
        """The bytes of one token."""
        return self.tokens.token_bytes(token)

    def encode(self, data: bytes) -> tuple[int, ...]:
        """Return tokens that spell these bytes exactly: the tokenizer's if possible, else the longest that match."""
        known = self._encoded.get(data)
        if known is None:
            known = self._spell(data)
            if len(self._encoded) < 4096:
                self._encoded[data] = known
        return known

    def _spell(self, data: bytes) -> tuple[int, ...]:
        try:
            own = tuple(self.tokens.encode(data.decode()))
        except UnicodeDecodeError:
            own = ()
        if own and self.text(own) == data:
            return own
        spelled: list[int] = []
        while data:
            token, length = self.longest(data)
            spelled.append(token)
            data = data[length:]
        return tuple(spelled)

    @cached_property
    def _index(self) -> tuple[list[bytes], list[int]]:
        pairs = sorted(
            (piece, token)
            for token in range(self.tokens.vocab_size)
            if token != self.eog_id and (piece := self.piece(token))
        )
        return [piece for piece, _ in pairs], [token for _, token in pairs]

    @cached_property
    def _longest_piece(self) -> int:
        return max(map(len, self._index[0]))

    def longest(self, data: bytes) -> tuple[int, int]:
        """Return the longest token that data begins with, and its length in bytes; raise ValueError without one."""
        pieces, tokens = self._index
        for length in range(min(len(data), self._longest_piece), 0, -1):
            place = bisect_left(pieces, data[:length])
            if place < len(pieces) and pieces[place] == data[:length]:
                return tokens[place], length
        raise ValueError(f"the vocabulary has no token for byte {data[0]:#04x}")


def vocabulary_of(tokens: TokenText) -> ByteVocabulary:
    """Return the vocabulary of a tokenizer; the last two are kept."""
    for known in _RECENT:
        if known.tokens is tokens:
            return known
    vocabulary = ByteVocabulary(tokens)
    _RECENT.append(vocabulary)
    return vocabulary


def unfinished_character(data: bytes) -> int:
    """The number of bytes at the end that belong to an incomplete UTF-8 character (0 to 3)."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            return back if back < _character_length(byte) else 0
        if byte < 0x80:
            return 0
    return 0


def finish_character(data: bytes) -> bytes:
    """The least bytes that complete an incomplete UTF-8 character at the end of data."""
    back = unfinished_character(data)
    if not back:
        return b""
    head = data[-back:]
    missing = _character_length(head[0]) - back
    # after these lead bytes the lowest continuation would be overlong, which UTF-8 forbids
    lowest = {0xE0: b"\xa0", 0xF0: b"\x90"}.get(head[0], b"\x80") if back == 1 else b"\x80"
    return lowest + b"\x80" * (missing - 1)


def _character_length(lead: int) -> int:
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2


def is_utf8(data: bytes) -> bool:
    """Whether data is well-formed UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
