"""Encodes documents that change with every keystroke; encoded lines are cached."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from lacuna_model.prior.index import Tokens
from lacuna_model.prior.suffix_array import token_type

# Where a text may be split so that the tokens of its parts are those of the whole. Some pre-tokenisers (GPT-2) never
# join a printable character and the following newline. Others (Qwen2) never join the end of a line and the start of a
# following line that has text.
_BORDERS = re.compile(r"(?<=[!-~])(?=\n)"), re.compile(r"(?<=\n)(?=[ \t]*[!-~])")
# A text that tells these kinds apart.
_SAMPLE = "if x:\n    y()\n\n\n        z"
REMEMBERED_LINES = 16384


class FileTokenizer(Protocol):
    """The part of a tokenizer that indexing needs."""

    vocab_size: int

    @property
    def fingerprint(self) -> str:
        """Identifies its vocabulary."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of several texts."""
        ...


class LineEncoder:
    """Encodes texts exactly as ``tokenizer`` does, line by line if one of the borders fits it, else as a whole."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self.kind = kind = token_type(tokenizer.vocab_size)
        self._line = lru_cache(maxsize=REMEMBERED_LINES)(
            lambda line: np.asarray(tokenizer.encode(line), dtype=kind).tobytes()
        )
        whole = tokenizer.encode(_SAMPLE)
        fitting = (
            border
            for border in _BORDERS
            if [token for part in border.split(_SAMPLE) for token in tokenizer.encode(part)] == whole
        )
        self._border = next(fitting, None)

    def encode(self, text: str) -> Tokens:
        """The token ids of ``text``."""
        parts = self._border.split(text) if self._border else [text]
        return np.frombuffer(b"".join(map(self._line, parts)), dtype=self.kind)
