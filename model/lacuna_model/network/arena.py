"""Keys and values of rows in an arena: which rows see which, how far each has moved, and the parts of a pass."""

import math
import mmap
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import empty_keys, rotary
from lacuna_kernels.quantised import packed, unpacked
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.devices import HOST


@dataclass(eq=False, slots=True)
class RowList:
    """Rows of a store, which do not change, in the order of a text.

    ``block`` int32 [n, 2] has each, and by how many positions its token has been moved since it was read.
    """

    block: NDArray[np.int32]
    _there: Tensor | None = None

    @classmethod
    def of(cls, rows: NDArray[np.int64], moved: NDArray[np.int64] | int = 0) -> "RowList":
        """Some rows [n]."""
        block = np.empty((len(rows), 2), dtype=np.int32)
        block[:, 0], block[:, 1] = rows, moved
        return cls(block)

    def on(self, device: torch.device) -> Tensor:
        """The block on a device; it is brought there once."""
        if self._there is None:
            self._there = torch.from_numpy(self.block).to(device)
        return self._there


NO_ROWS = RowList.of(np.empty(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Rows of a pass that are neighbours: each attends to the first of the rows ``before``, and then of ``own``.

    ``counts`` [R] says to how many. Those ``before`` are the same from pass to pass, for the most part.
    """

    before: RowList
    own: RowList
    counts: NDArray[np.int64]

    @property
    def order(self) -> NDArray[np.int32]:
        """All these rows of the store."""
        return np.concatenate((self.before.block[:, 0], self.own.block[:, 0]))


def in_order(tail: int, count: int) -> SeenRows:
    """What ``count`` rows at the ``tail`` of a store see where each attends to all rows up to its own."""
    return SeenRows(NO_ROWS, RowList.of(np.arange(tail + count)), np.arange(tail + 1, tail + count + 1))


def of_mask(mask: Tensor) -> list[SeenRows]:
    """What rows with a bool mask [R, K] see, in the store's order."""
    orders = [row.nonzero()[0] for row in mask.numpy(force=True)]
    return [SeenRows(NO_ROWS, RowList.of(order), np.array([len(order)])) for order in orders]


def mask_of(seen: Sequence[SeenRows], width: int) -> Tensor:
    """The mask [R, width] of rows, in host memory."""
    mask = np.zeros((sum(len(one.counts) for one in seen), width), dtype=np.bool_)
    first = 0
    for one in seen:
        shown = mask[first : (first := first + len(one.counts))]
        order, least, most = one.order, int(one.counts.min()), int(one.counts.max())
        shown[:, order[:least]] = True
        shown[:, order[least:most]] = np.arange(least, most) < one.counts[:, None]
    return torch.from_numpy(mask)


@dataclass(frozen=True)
class MovedKeys:
    """By how many positions each key of a store has ``moved`` [K] since it was read.

    Those that no row of the pass has ``seen`` count as not moved; where that is empty, all are seen.
    """

    moved: NDArray[np.int64]
    seen: Sequence[SeenRows] = ()

    @cached_property
    def by(self) -> NDArray[np.int64]:
        """The distances of the keys [K]."""
        if not self.seen:
            return self.moved
        found = np.zeros_like(self.moved)
        for one in self.seen:
            order = one.order
            found[order] = self.moved[order]
        return found

    @cached_property
    def distances(self) -> NDArray[np.int64]:
        """The distances that occur, 0 first, which always belongs to them."""
        found = np.unique(self.by)
        return np.concatenate((np.zeros(1, dtype=np.int64), found[found != 0]))

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """Runs of keys of one distance [n, 2]: the end of each, and the place among ``distances``."""
        ends = np.append(np.flatnonzero(np.diff(self.by)) + 1, len(self.by))
        order = np.argsort(self.distances)
        places = order[np.searchsorted(self.distances, self.by[ends - 1], sorter=order)]
        return np.stack((ends, places), axis=1)

    def rotation(self, cos: Tensor, sin: Tensor) -> Callable[[Tensor], Tensor] | None:
        """What rotates each key to where its token is, for attention that rotates no query; None where none has moved.

        ``cos`` and ``sin`` [P, D] are those of all positions. It returns a copy of keys [.., K, D], which is not
        stored, so that a key is rounded from its own.
        """
        places = np.flatnonzero(self.by)
        if not len(places):
            return None
        rows, by = (torch.from_numpy(one).to(cos.device) for one in (places, self.by[places]))
        own_cos, own_sin = cos[by.abs()], sin[by.abs()] * by.sign()[:, None]

        def rotated(keys: Tensor) -> Tensor:
            turned = rotary(keys[..., rows, :].float(), own_cos, own_sin)
            return keys.index_copy(-2, rows, turned.to(keys.dtype))

        return rotated


GROWTH = 512
# Windows has memory of this kind alone.
_PRIVATE: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if sys.platform != "win32" else {}


class Arena:
    """Keys and values of all layers [L, G, capacity, D]; a pass writes its rows at ``tail`` and reads up to their end.

    In 8 bit (:mod:`lacuna_kernels.quantised`) there are ``scales`` [L, G, capacity] of keys and of values.

    ``moved`` [capacity]: by how many positions the token of each row has been moved since its key was made, where any
    ``has_moved``.
    """

    def __init__(self, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
        """``dtype`` int8: in 8 bit."""
        self._allocate((config.num_layers, config.num_kv_heads, GROWTH, config.head_dim), device, dtype)
        self.moved: NDArray[np.int64] = np.zeros(GROWTH, dtype=np.int64)
        self.has_moved = False
        self.tail = 0

    def _allocate(self, shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> None:
        self.keys = empty_keys(shape, device, dtype, _zeros)
        self.values = _zeros(shape, device, dtype)
        self.scales = tuple(_zeros(shape[:3], device, torch.float32) for _ in range(2 * (dtype is torch.int8)))

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values hold."""
        return sum(store.numel() * store.element_size() for store in self._stores)

    @property
    def dtype(self) -> torch.dtype:
        """What attention multiplies."""
        return attended_in(self.keys.dtype)

    def reserve(self, rows: int) -> None:
        """Grow to at least ``rows`` rows in total; the contents are kept."""
        capacity = self.keys.shape[2]
        if rows <= capacity:
            return
        before = self._stores
        shape = (*self.keys.shape[:2], max(rows + GROWTH, capacity * 3 // 2), self.keys.shape[3])
        self._allocate(shape, self.keys.device, self.keys.dtype)
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
        return RowList.of(rows, self.moved[rows] if self.has_moved else 0)

    def exchange(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write the rows at ``tail`` and return all rows up to their end."""
        end = self.tail + key.shape[2]
        own = slice(self.tail, end)
        if self.scales:
            for store, scales, rows in zip((self.keys, self.values), self.scales, (key, value), strict=True):
                store[layer, :, own], scales[layer, :, own] = packed(rows[0])
        else:
            self.keys[layer, :, own], self.values[layer, :, own] = key[0], value[0]
        return self.read(layer, slice(0, end))

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


@dataclass(frozen=True, slots=True)
class PassPart:
    """Consecutive rows of a pass that share a store, ``count`` of them; without one they attend to each other only.

    ``mask``, bool [R, K] or [B, 1, R, K], is True where a row attends to one of the K keys that the store returns
    (None: everywhere). Instead of a mask, ``seen``: to rows of the store in an order; or ``causal``: every row attends
    to all keys up to its own, also in that order if both are given. ``moved``: tokens of the K keys have moved since
    they were read. ``kinds`` name the additions of each row, "" for none; without them no row of a token has any.
    """

    count: int
    store: Arena | None
    mask: Tensor | None = None
    causal: bool = False
    seen: Sequence[SeenRows] = ()
    moved: MovedKeys | None = None
    kinds: Sequence[str] = ()

    def shown(self, width: int, device: torch.device) -> Tensor | None:
        """The mask of a part whose store returns so many rows."""
        if not self.causal:
            mask = mask_of(self.seen, width) if self.seen else self.mask
            return None if mask is None else mask.to(device)
        columns = torch.arange(width, device=device)
        return columns <= columns[width - self.count :, None]
