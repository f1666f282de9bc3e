"""Stores the keys and values of a document's rows."""

import copy
import math
import mmap
import sys

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import empty_keys
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.devices import HOST

GROWTH = 512
# Windows has memory of this kind alone.
_PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if sys.platform != "win32" else {}


class Arena:
    """Keys and values of all layers [L, G, capacity, D]; a pass writes its rows at ``tail`` and reads from ``head``.

    ``moved`` [capacity]: by how many positions the token of each row has been moved since its key was made.
    """

    def __init__(self, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.num_layers, config.num_kv_heads, GROWTH, config.head_dim)
        self.keys = empty_keys(shape, device, dtype, _zeros)
        self.values = _zeros(shape, device, dtype)
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
        self.keys = empty_keys(shape, old_keys.device, old_keys.dtype, _zeros)
        self.values = _zeros(shape, old_values.device, old_values.dtype)
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


def _zeros(shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros, in the memory of the host in pages of their own.

    These take memory once they are written, and go back to the system when they are dropped. Those of the heap would
    stay with the process as long as anything behind them is in use.
    """
    if device != HOST:
        return torch.zeros(shape, device=device, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, math.prod(shape) * dtype.itemsize, **_PRIVATE), dtype=dtype).view(shape)
