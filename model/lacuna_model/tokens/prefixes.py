"""Finds the tokens that begin with given bytes, as tensors of the model's device."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from lacuna_model.tokens.tokenizer import Tokenizer

CPU = torch.device("cpu")


class PrefixTable:
    """The tokens of a vocabulary by the bytes that they begin with; ids are on ``device``."""

    def __init__(self, tokenizer: Tokenizer, device: torch.device = CPU) -> None:
        self._device = device
        self._tokenizer = tokenizer
        self.starting_with = lru_cache(maxsize=256)(self._starting_with)
        self.starting_flush = lru_cache(maxsize=16)(self._starting_flush)

    def left_of(self, prefix: bytes, tokens: Sequence[int]) -> bytes:
        """The rest of ``prefix`` after ``tokens``; empty where their text is not a beginning of ``prefix``."""
        said = self._tokenizer.decode_bytes(tokens[: len(prefix)])
        return prefix[len(said) :] if prefix.startswith(said) else b""

    def _starting_flush(self, prefix: bytes) -> Tensor:
        """Ids [N] of the tokens whose bytes start with ``prefix``, and have no blank behind it."""
        ids = self._tokenizer.starting_with(prefix)
        behind = (self._tokenizer.token_bytes(token)[len(prefix) :][:1] for token in ids.tolist())
        return torch.from_numpy(ids[[byte not in (b" ", b"\t") for byte in behind]]).to(self._device)

    def _starting_with(self, prefix: bytes) -> Tensor:
        """Ids [N] of the tokens whose bytes start with ``prefix``."""
        return torch.from_numpy(self._tokenizer.starting_with(prefix)).to(self._device)
