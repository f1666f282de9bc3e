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
from lacuna_kernels.eight_bit import packed, unpacked
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.devices import HOST
from lacuna_model.network.seen import RowList

GROWTH = 512
# Windows has memory of this kind alone.
_PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if sys.platform != "win32" else {}


class Arena:
    """Keys and values of all layers [L, G, capacity, D]; a pass writes its rows at ``tail`` and reads from ``head``.

    In 8 bit (:mod:`lacuna_kernels.eight_bit`) there are ``scales`` [L, G, capacity] of keys and of values.

    ``moved`` [capacity]: by how many positions the token of each row has been moved since its key was made, where any
    ``has_moved``.
    """

    def __init__(self, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
        """``dtype`` int8: in 8 bit."""
        shape = (config.num_layers, config.num_kv_heads, GROWTH, config.head_dim)
        self.keys = empty_keys(shape, device, dtype, _zeros)
        self.values = _zeros(shape, device, dtype)
        eight_bit = dtype is torch.int8
        self.scales = tuple(_zeros(shape[:3], device, torch.float32) for _ in range(2 * eight_bit))
        self.moved: NDArray[np.int64] = np.zeros(GROWTH, dtype=np.int64)
        self.has_moved = False
        self.head = 0
        self.tail = 0

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values hold."""
        return sum(store.numel() * store.element_size() for store in self._stores)

    @property
    def dtype(self) -> torch.dtype:
        """What attention multiplies."""
        return attended_in(self.keys.dtype)

    @property
    def is_bfloat16(self) -> bool:
        """Whether keys are in bfloat16, which the kernels in C require."""
        return self.keys.dtype is torch.bfloat16

    def reserve(self, rows: int) -> None:
        """Grow to at least ``rows`` rows in total; the contents are kept."""
        capacity = self.keys.shape[2]
        if rows <= capacity:
            return
        before, device = self._stores, self.keys.device
        shape = (*self.keys.shape[:2], max(rows + GROWTH, capacity * 3 // 2), self.keys.shape[3])
        self.keys = empty_keys(shape, device, self.keys.dtype, _zeros)
        self.values = _zeros(shape, device, self.keys.dtype)
        self.scales = tuple(_zeros(shape[:3], device, torch.float32) for _ in self.scales)
        for store, old in zip(self._stores, before, strict=True):
            store[:, :, :capacity] = old
        self.moved = np.concatenate((self.moved, np.zeros(shape[2] - capacity, dtype=np.int64)))

    def gather(self, rows: NDArray[np.int64]) -> None:
        """Let some rows, in their order, be the first ones."""
        order = torch.tensor(rows, device=self.keys.device)
        for store in self._stores:
            store[:, :, : len(rows)] = store[:, :, order].clone()
        self.moved[: len(rows)] = self.moved[rows]

    def move(self, rows: NDArray[np.int64], by: int) -> None:
        """Know that the tokens of rows have been moved by so many positions more."""
        self.moved[rows] += by
        self.has_moved = True

    def listed(self, rows: NDArray[np.int64]) -> RowList:
        """Rows in the order of a text, with what is known of their tokens."""
        return RowList(rows, self.moved[rows] if self.has_moved else None)

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
        own = slice(self.tail, end)
        if self.scales:
            for store, scales, rows in zip((self.keys, self.values), self.scales, (key, value), strict=True):
                store[layer, :, own], scales[layer, :, own] = packed(rows[0])
        else:
            self.keys[layer, :, own], self.values[layer, :, own] = key[0], value[0]
        return self.read(layer, slice(self.head, end))

    def read(self, layer: int, rows: slice) -> tuple[Tensor, Tensor]:
        """Keys and values [1, G, n, D] of some rows of a layer."""
        keys, values = self.keys[None, layer, :, rows], self.values[None, layer, :, rows]
        if not self.scales:
            return keys, values
        key_scales, value_scales = (scales[None, layer, :, rows] for scales in self.scales)
        return unpacked(keys, key_scales, self.dtype), unpacked(values, value_scales, self.dtype)

    @property
    def _stores(self) -> tuple[Tensor, ...]:
        return self.keys, self.values, *self.scales


def attended_in(stored: torch.dtype) -> torch.dtype:
    """What attention multiplies where keys and values are ``stored`` so."""
    return torch.bfloat16 if stored is torch.int8 else stored


def _zeros(shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros, in the memory of the host in pages of their own.

    These take memory once they are written, and go back to the system when they are dropped. Those of the heap would
    stay with the process as long as anything behind them is in use.
    """
    if device != HOST:
        return torch.zeros(shape, device=device, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, math.prod(shape) * dtype.itemsize, **_PRIVATE), dtype=dtype).view(shape)
