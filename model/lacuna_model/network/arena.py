"""Stores the keys and values of a document's rows."""

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import empty_keys
from lacuna_model.network.config import ModelConfig

GROWTH = 512


class Arena:
    """Keys and values of all layers [L, G, capacity, D]; a pass writes its rows at ``tail`` and reads from ``head``.

    ``moved`` [capacity]: by how many positions the token of each row has been moved since its key was made.
    """

    def __init__(self, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.num_layers, config.num_kv_heads, GROWTH, config.head_dim)
        self.keys = empty_keys(shape, device, dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.moved: NDArray[np.int64] = np.zeros(GROWTH, dtype=np.int64)
        self.head = 0
        self.tail = 0

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values hold."""
        return 2 * self.keys.numel() * self.keys.element_size()

    @property
    def is_bfloat16(self) -> bool:
        """Whether keys are in bfloat16, which the kernels in C require."""
        return self.keys.dtype is torch.bfloat16

    def reserve(self, rows: int) -> None:
        """Grow to at least ``rows`` rows in total; the contents are kept."""
        capacity = self.keys.shape[2]
        if rows <= capacity:
            return
        old_keys, old_values = self.keys, self.values
        shape = (*old_keys.shape[:2], max(rows + GROWTH, capacity * 3 // 2), old_keys.shape[3])
        self.keys = empty_keys(shape, old_keys.device, old_keys.dtype)
        self.values = old_values.new_zeros(shape)
        self.keys[:, :, :capacity], self.values[:, :, :capacity] = old_keys, old_values
        self.moved = np.concatenate((self.moved, np.zeros(shape[2] - capacity, dtype=np.int64)))

    def behind(self, count: int) -> "Arena":
        """The same keys and values for rows of a pass that come after its first ``count`` ones."""
        other = copy.copy(self)
        other.tail += count
        return other

    def rows(self, count: int) -> range:
        """The rows that a pass of ``count`` rows attends to; its own are the last."""
        return range(self.head, self.tail + count)

    def exchange(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write the rows at ``tail`` and return all rows from ``head`` to their end."""
        end = self.tail + key.shape[2]
        self.keys[layer, :, self.tail : end] = key[0]
        self.values[layer, :, self.tail : end] = value[0]
        return self.keys[None, layer, :, self.head : end], self.values[None, layer, :, self.head : end]
