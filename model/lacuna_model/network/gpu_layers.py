"""The layers of a transformer on a GPU, in ten launches each for a pass of few rows.

The residual has the precision of the keys and values (bfloat16). A product of few rows comes in pieces that the next
kernel adds. So a layer is: the product for q, k, v; bias, rotary and the writing of keys and values; attention over
blocks of keys; their merging; the output's product; addition and norm; the product for gate and up; the gate; the
product down; addition and norm. Wide passes differ in attention and in the products, which are torch's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import MAX_ROWS, FoldedMask, attention, fold_mask, rms_norm
from lacuna_model.network.arena import Arena
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import GpuLinear
from lacuna_model.network.masks import Pair


@dataclass(frozen=True, slots=True)
class GpuLayer:
    """One block's parts; only ``qkv`` may have a bias. ``head_norms`` are those of query and key, if there are any."""

    attn_norm: Tensor
    qkv: GpuLinear
    output: GpuLinear
    mlp_norm: Tensor
    gate_up: GpuLinear
    down: GpuLinear
    head_norms: tuple[Tensor, Tensor] | None = None


@dataclass(frozen=True, slots=True)
class ArenaRows:
    """``count`` rows of a pass, which go to the tail of an ``arena``.

    ``mask`` [R, K], bool, is True where a row attends to one of the arena's first K rows; None if every row attends to
    all rows before it and to itself.
    """

    count: int
    arena: Arena
    mask: Tensor | None = None

    @property
    def end(self) -> int:
        """The arena's rows after the pass."""
        return self.arena.tail + self.count

    def seen(self) -> Tensor:
        """The mask, made where it follows from the order of the rows."""
        if self.mask is not None:
            return self.mask
        columns = torch.arange(self.end, device=self.arena.keys.device)
        return columns <= columns[self.arena.tail :, None]


def numbers(parts: Sequence[ArenaRows]) -> NDArray[np.int64]:
    """The numbers [R, 6] of :class:`lacuna_kernels.gpu.placement.Placement` for all rows."""
    from lacuna_kernels.gpu import placement

    found = [
        placement.numbers(part.arena.keys, part.arena.values, part.arena.tail, part.count, causal=part.mask is None)
        for part in parts
    ]
    return found[0] if len(found) == 1 else np.concatenate(found)


def described(parts: Sequence[ArenaRows], device: torch.device) -> Tensor:
    """The same as a tensor on a device."""
    return torch.from_numpy(numbers(parts)).to(device)


def show(parts: Sequence[ArenaRows], mask: Tensor) -> None:
    """Put the masks of the parts into the first rows of ``mask`` [R, K], each into its first columns."""
    first = 0
    for part in parts:
        mask[first : first + part.count, : part.end].copy_(part.seen())
        first += part.count


@dataclass(frozen=True, slots=True)
class Spot:
    """Rows as kernels take them: the placement ``data`` [R, 6], the ``mask`` [R, K], and the ``most`` that one sees.

    Where ``wide`` is given, torch attends, with the mask ``folded`` or causally.
    """

    count: int
    data: Tensor
    mask: Tensor | None = None
    most: int = 0
    wide: Arena | None = None
    folded: FoldedMask | None = None


@dataclass(frozen=True, slots=True)
class GpuLayers:
    """All layers and the final norm; ``cos`` and ``sin`` [P, D] are the angles of all positions.

    ``added`` has for every layer what mask rows have added to its linears, if they have anything.
    """

    config: ModelConfig
    layers: Sequence[GpuLayer]
    final_norm: Tensor
    cos: Tensor
    sin: Tensor
    added: Sequence[Mapping[str, Pair]] = ()

    def __call__(self, x: Tensor, positions: Tensor, parts: Sequence[ArenaRows], gated: int = 0) -> Tensor:
        """Hidden states [R, H], float32, after the final norm, of embeddings ``x`` [R, H] at ``positions`` [R].

        The last ``gated`` rows are mask rows.
        """
        x = x.to(parts[0].arena.keys.dtype)
        gate = (torch.arange(len(x), device=x.device) >= len(x) - gated).to(x.dtype)[:, None] if gated else None
        return self.states(x, positions, list(self._spots(parts)), gate)

    def states(self, x: Tensor, positions: Tensor, spots: Sequence[Spot], gate: Tensor | None = None) -> Tensor:
        """As above, for rows whose places are given; ``x`` has the precision of the keys.

        ``gate`` [R, 1] is 1 in mask rows and 0 in others; None where there are no mask rows.
        """
        from lacuna_kernels.gpu.gate import gate as gated
        from lacuna_kernels.gpu.rms_norm import add_rms_norm

        eps = self.config.rms_norm_eps
        normed = rms_norm(x, self.layers[0].attn_norm, eps).to(x.dtype)
        ends = [*(layer.attn_norm for layer in self.layers[1:]), self.final_norm]
        for index, (layer, end) in enumerate(zip(self.layers, ends, strict=True)):
            mixed = self._attended(index, self._product(index, "qkv", normed, gate), positions, spots, x.dtype)
            x, normed = add_rms_norm(x, self._product(index, "output", mixed, gate), layer.mlp_norm, eps, x.dtype)
            inner = gated(self._product(index, "gate_up", normed, gate), x.dtype)
            kept = torch.float32 if index == len(ends) - 1 else x.dtype
            x, normed = add_rms_norm(x, self._product(index, "down", inner, gate), end, eps, kept)
        return normed

    def _product(self, index: int, name: str, x: Tensor, gate: Tensor | None) -> Tensor:
        """The product in pieces of one of a layer's linears, with its addition where the gate is 1."""
        linear: GpuLinear = getattr(self.layers[index], name)
        pieces = linear.pieces(x)
        if gate is not None:
            pair = self.added[index][name]
            pieces[0] += pair.high(pair.low(x) * gate)
        return pieces

    def _attended(
        self, index: int, pieces: Tensor, positions: Tensor, spots: Sequence[Spot], dtype: torch.dtype
    ) -> Tensor:
        """The mixed values [R, H D] of all rows, whose keys and values are stored."""
        from lacuna_kernels.gpu.attend import attend
        from lacuna_kernels.gpu.heads import place_heads
        from lacuna_kernels.gpu.placement import RowPlaces

        config, layer = self.config, self.layers[index]
        norms = None if layer.head_norms is None else (*layer.head_norms, config.rms_norm_eps)
        mixed, first = list[Tensor](), 0
        for spot in spots:
            rows = slice(first, first := first + spot.count)
            placement = RowPlaces(spot.data, config.num_heads, config.num_kv_heads, config.head_dim, dtype)
            angles = self.cos, self.sin
            query = place_heads(pieces[:, rows], layer.qkv.bias, norms, angles, positions[rows], placement, index)
            if spot.wide is not None:
                mixed.append(_wide(query, spot.wide, index, spot))
            else:
                assert spot.mask is not None
                mixed.append(attend(query, placement, spot.mask, index, spot.most).flatten(1))
        return mixed[0] if len(mixed) == 1 else torch.cat(mixed)

    def _spots(self, parts: Sequence[ArenaRows]) -> Iterator[Spot]:
        """Wide parts one by one, and neighbouring others together."""
        repeats = self.config.num_heads // self.config.num_kv_heads
        for few, neighbours in groupby(parts, lambda part: part.count <= MAX_ROWS):
            group = list(neighbours)
            if few:
                device, rows = group[0].arena.keys.device, sum(part.count for part in group)
                most = max(part.end for part in group)
                mask = torch.zeros((rows, most), device=device, dtype=torch.uint8)
                show(group, mask)
                yield Spot(rows, described(group, device), mask, most)
                continue
            for part in group:
                keys = part.arena.keys
                folded = None if part.mask is None else fold_mask(part.mask, repeats, keys.dtype)
                yield Spot(part.count, described([part], keys.device), wide=part.arena, folded=folded)


def _wide(query: Tensor, arena: Arena, index: int, spot: Spot) -> Tensor:
    """Attention [R, H D] of many rows, whose keys and values the arena has."""
    end = arena.tail + spot.count
    keys, values = (store[index, None, :, :end] for store in (arena.keys, arena.values))
    found = attention(query.transpose(0, 1)[None], keys, values, spot.folded, causal=spot.folded is None)
    return found[0].transpose(0, 1).flatten(1)
