"""Finds the tokens that begin with given bytes, in a sorted vocabulary."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, takewhile

import torch
from torch import Tensor

from lacuna_model.tokens.tokenizer import Tokenizer

CPU = torch.device("cpu")


class PrefixTable:
    """The vocabulary in byte order, so that tokens with a common prefix are neighbours; ids are on ``device``."""

    def __init__(self, tokenizer: Tokenizer, device: torch.device = CPU) -> None:
        self._device = device
        self._tokenizer = tokenizer
        self._special_ids = tokenizer.special_ids
        self.specials_but = lru_cache(maxsize=4)(self._specials_but)
        self.starting_with = lru_cache(maxsize=256)(self._starting_with)

    def token(self, text: bytes) -> int | None:
        """The token with exactly this text; None where there is none."""
        return self._tokenizer.ids.get(text)

    def due(self, prefix: bytes, tokens: Sequence[int]) -> bytes:
        """The rest of ``prefix`` after ``tokens``; empty where their text is not a beginning of ``prefix``."""
        said = self._tokenizer.decode_bytes(tokens[: len(prefix)])
        return prefix[len(said) :] if prefix.startswith(said) else b""

    def _starting_with(self, prefix: bytes) -> Tensor:
        """Ids [N] of the tokens whose bytes start with ``prefix``."""
        bytes_of, ordered = self._tokenizer.token_bytes, self._tokenizer.in_order
        first = bisect_left(ordered, prefix, key=bytes_of)
        found = list(takewhile(lambda token: bytes_of(token).startswith(prefix), islice(ordered, first, None)))
        return torch.tensor(found, dtype=torch.long, device=self._device)

    def _specials_but(self, kept: int) -> Tensor:
        """Ids [N] of the special tokens other than ``kept``; none of them is text."""
        return torch.tensor(sorted(self._special_ids - {kept}), dtype=torch.long, device=self._device)
