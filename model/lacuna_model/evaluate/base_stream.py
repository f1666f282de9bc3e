"""The base transformer as a left-to-right model with a KV cache of its own."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model.arena import Arena
from lacuna_model.errors import RequestError
from lacuna_model.transformer import Transformer


class BaseStream:
    """Next-token logits of the base model; satisfies ``NextToken``.

    ``capacity`` is the most tokens a stream may hold, prompt and generated together. ``chunk`` tokens are encoded at
    a time, which bounds the attention mask's memory. Keys and values are kept in ``dtype``.
    """

    def __init__(
        self, transformer: Transformer, *, capacity: int = 2048, chunk: int = 512, dtype: torch.dtype = torch.float32
    ) -> None:
        self._transformer = transformer
        self._capacity = capacity
        self._chunk = chunk
        self._arena = Arena(transformer.config, transformer.final_norm.device, dtype)
        self._arena.reserve(capacity)
        self._tokens: list[int] = []
        self._last: Tensor | None = None

    def reset(self, tokens: Sequence[int]) -> None:
        """Encodes a prompt, which must not be empty; what it shares with the tokens before it is not encoded again."""
        shared = 0
        # The last token is always encoded anew: its output is what the logits are read from.
        for old, new in zip(self._tokens, tokens[:-1], strict=False):
            if old != new:
                break
            shared += 1
        self._tokens = self._tokens[:shared]
        self._arena.tail = shared
        for start in range(shared, len(tokens), self._chunk):
            self._encode(tokens[start : start + self._chunk])

    def logits(self) -> NDArray[np.float32]:
        """Next-token logits [vocab] in float32."""
        if self._last is None:
            raise RequestError("a left-to-right stream needs a prompt before it can predict")
        with torch.inference_mode():
            row: NDArray[np.float32] = self._transformer.head(self._last)[0, 0].float().numpy(force=True)
        return row

    def append(self, token: int) -> None:
        """Encodes one more token."""
        self._encode([token])

    def _encode(self, tokens: Sequence[int]) -> None:
        start, rows = self._arena.tail, len(tokens)
        if start + rows > self._capacity:
            raise RequestError(f"a left-to-right stream of {start + rows} tokens exceeds its {self._capacity}")
        with torch.inference_mode():
            device = self._transformer.final_norm.device
            positions = torch.arange(start, start + rows, device=device)
            visible = torch.arange(start + rows, device=device) <= positions[:, None] if rows > 1 else None
            x = self._transformer.embed(torch.tensor([list(tokens)], device=device))
            self._last = self._transformer.hidden(x, positions, self._arena, visible)[:, -1:]
        self._arena.tail += rows
        self._tokens.extend(tokens)
