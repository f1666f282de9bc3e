"""Token ids of documents that change by the keystroke: what was encoded before is remembered line by line."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from lacuna_model.prior.index import Tokens
from lacuna_model.prior.suffix_array import token_type

# No token of the pre-tokenisers in use spans a printable character and the newline behind it, so that lines which end
# in one can be encoded by themselves.
_BORDER = re.compile(r"(?<=[!-~])(?=\n)")
REMEMBERED_LINES = 16384


class FileTokenizer(Protocol):
    """What indexing needs of a tokenizer."""

    vocab_size: int

    @property
    def fingerprint(self) -> str:
        """Tells its vocabulary from others."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of several texts."""
        ...


class LineEncoder:
    """Encodes whole texts as ``tokenizer`` does."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self.kind = kind = token_type(tokenizer.vocab_size)
        self._line = lru_cache(maxsize=REMEMBERED_LINES)(
            lambda line: np.asarray(tokenizer.encode(line), dtype=kind).tobytes()
        )

    def encode(self, text: str) -> Tokens:
        """The token ids of ``text``."""
        return np.frombuffer(b"".join(map(self._line, _BORDER.split(text))), dtype=self.kind)
