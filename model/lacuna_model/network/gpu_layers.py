"""The layers of a transformer on a GPU, in ten launches each for a pass of few rows.

The residual has the precision of the keys and values (bfloat16). A product of few rows comes in pieces that the next
kernel adds. So a layer is: the product for q, k, v; bias, rotary and the writing of keys and values; attention over
blocks of keys; their merging; the output's product; addition and norm; the product for gate and up; the gate; the
product down; addition and norm. Where rows have additions, each product has one launch more, which makes these; those
of several kinds are torch's products. Wide passes differ in attention and in the products, which are torch's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import MAX_ROWS, FoldedMask, attention, fold_mask, rms_norm
from lacuna_kernels.native import AddedRows
from lacuna_model.network.arena import Arena, PassPart, SeenRows, in_order, of_mask
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import DenseLinear, GpuLinear, Layer, Pair

if TYPE_CHECKING:
    from lacuna_kernels.gpu.product import Addition


def additions(layer: Layer, added: Mapping[str, Pair]) -> dict[str, "tuple[Pair, Addition]"]:
    """What rows of a kind have ``added`` to a layer's linears, for wide passes and in the form of the kernels."""
    found = {}
    for name, pair in added.items():
        linear: GpuLinear = getattr(layer, name)
        assert isinstance(pair.low, DenseLinear | GpuLinear)
        assert isinstance(pair.high, DenseLinear | GpuLinear)
        found[name] = pair, linear.addition(pair.low, pair.high)
    return found


def runs_on_gpu(layer: Layer) -> bool:
    """Whether the kernels are for a layer: its linears are those of GPUs, and only ``qkv`` may have a bias."""
    linears = (layer.output, layer.gate_up, layer.down)
    others = all(isinstance(one, GpuLinear) and one.bias is None for one in linears)
    return others and isinstance(layer.qkv, GpuLinear)


def takes(parts: Sequence[PassPart]) -> bool:
    """Whether the kernels are for a pass: all its rows go to arenas, and it is said what they see."""
    return all(
        part.store is not None and (part.causal or part.seen or (part.mask is not None and part.mask.ndim == 2))
        for part in parts
    )


def arena_of(part: PassPart) -> Arena:
    """The arena of a part of a pass that :func:`takes` allows."""
    assert part.store is not None
    return part.store


def _runs(part: PassPart) -> Sequence[SeenRows]:
    """What a part's rows attend to, in order."""
    if part.seen:
        return part.seen
    return [in_order(arena_of(part).tail, part.count)] if part.causal or part.mask is None else of_mask(part.mask)


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the rows of a pass lie, as kernels take it, and the ``most`` rows of a store that one of them sees.

    The ``numbers`` [R, 11] are those of :class:`lacuna_kernels.gpu.heads.RowPlaces`. They have the addresses of
    lists on the device, which must be there until the launches of the pass are made: what is seen ``before``, and all
    rows' ``own``, which this pass has brought.
    """

    numbers: NDArray[np.int64]
    before: Sequence[Tensor]
    own: Tensor
    most: int


def placed(parts: Sequence[PassPart]) -> Placed:
    """Describe the rows of some parts, and copy to the device what they see and what is not there yet."""
    from lacuna_kernels.gpu import heads

    keys, runs = arena_of(parts[0]).keys, [_runs(part) for part in parts]
    every = [one for own in runs for one in own]
    ends = list(accumulate((len(one.own.block) for one in every), initial=0))
    host = torch.empty((ends[-1], 2), dtype=torch.int32, pin_memory=keys.is_cuda)
    for one, (first, last) in zip(every, pairwise(ends), strict=True):
        host.numpy()[first:last] = one.own.block
    own = host.to(keys.device, non_blocking=True)
    before = [one.before.on(keys.device) for one in every]
    size = own.element_size() * 2
    lists = np.array(
        [
            (there.data_ptr(), len(there), own.data_ptr() + size * first)
            for there, first in zip(before, ends, strict=False)
        ]
    ).repeat([len(one.counts) for one in every], axis=0)
    counts = np.concatenate([one.counts for one in every])
    numbers, first = list[NDArray[np.int64]](), 0
    for part in parts:
        rows, arena = slice(first, first := first + part.count), arena_of(part)
        stores = arena.keys, arena.values, arena.tail
        numbers.append(heads.numbers(*stores, counts[rows], lists[rows], arena.scales))
    return Placed(np.concatenate(numbers), before, own, int(counts.max()))


@dataclass(frozen=True, slots=True)
class Spot:
    """Rows as kernels take them: the placement ``data`` [R, 11], and the ``most`` rows that one of them sees.

    ``placed`` has the lists of these. The stores may be in ``eight_bit``. Where the rows of a ``wide`` part are given,
    torch attends, with the mask ``folded`` or causally, to keys that are rotated by a ``rotation`` where they have
    moved.
    """

    count: int
    data: Tensor
    most: int = 0
    eight_bit: bool = False
    placed: Placed | None = None
    wide: PassPart | None = None
    folded: FoldedMask | None = None
    rotation: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True, slots=True)
class GpuLayers:
    """All layers and the final norm; ``cos`` and ``sin`` [P, D] are the angles of all positions.

    ``added`` has for every layer and kind of rows what these have added to its linears, for wide passes and for others.
    ``masks`` is the kind of mask rows, if there are any. Theirs alone are fused with the products: rows of tokens have
    the same bits whatever kinds of rows are beside them.
    """

    config: ModelConfig
    layers: Sequence[Layer]
    final_norm: Tensor
    cos: Tensor
    sin: Tensor
    added: Sequence[Sequence[Mapping[str, "tuple[Pair, Addition]"]]] = ()
    masks: int | None = None

    def __call__(
        self, x: Tensor, positions: Tensor, parts: Sequence[PassPart], added: Sequence[AddedRows] = ()
    ) -> Tensor:
        """Hidden states [R, H], float32, after the final norm, of embeddings ``x`` [R, H] at ``positions`` [R].

        Those of ``added`` have additions.
        """
        x = x.to(arena_of(parts[0]).dtype)
        gates: dict[int, Tensor] = {}
        for span in added:
            gate = gates.setdefault(span.kind, torch.zeros((len(x), 1), dtype=x.dtype, device=x.device))
            gate[span.first : span.first + span.rows] = 1
        return self.states(x, positions, list(self._spots(parts)), gates)

    def states(
        self, x: Tensor, positions: Tensor, spots: Sequence[Spot], gates: Mapping[int, Tensor] | None = None
    ) -> Tensor:
        """As above, for rows whose places are given; ``x`` has the precision of the keys.

        ``gates`` [R, 1] are by kind: 1 in rows that have its additions, and 0 in others.
        """
        from lacuna_kernels.gpu.elementwise import add_rms_norm
        from lacuna_kernels.gpu.elementwise import gate as gated

        eps = self.config.rms_norm_eps
        normed = rms_norm(x, self.layers[0].attn_norm, eps).to(x.dtype)
        ends = [*(layer.attn_norm for layer in self.layers[1:]), self.final_norm]
        for index, (layer, end) in enumerate(zip(self.layers, ends, strict=True)):
            mixed = self._attended(index, self._product(index, "qkv", normed, gates), positions, spots, x.dtype)
            x, normed = add_rms_norm(x, self._product(index, "output", mixed, gates), layer.mlp_norm, eps, x.dtype)
            inner = gated(self._product(index, "gate_up", normed, gates), x.dtype)
            kept = torch.float32 if index == len(ends) - 1 else x.dtype
            x, normed = add_rms_norm(x, self._product(index, "down", inner, gates), end, eps, kept)
        return normed

    def _product(self, index: int, name: str, x: Tensor, gates: Mapping[int, Tensor] | None) -> Tensor:
        """The product in pieces of one of a layer's linears, with its additions where their gates are 1."""
        linear: GpuLinear = getattr(self.layers[index], name)
        if not gates:
            return linear.pieces(x)
        added = [(*self.added[index][kind][name], gate) for kind, gate in gates.items()]
        if list(gates) == [self.masks] and len(x) <= MAX_ROWS:
            ((_, addition, gate),) = added
            return linear.added_pieces(x, addition, gate)
        pieces = linear.pieces(x)
        for pair, _, gate in added:
            pieces[0] += pair(x) * gate
        return pieces

    def _attended(
        self, index: int, pieces: Tensor, positions: Tensor, spots: Sequence[Spot], dtype: torch.dtype
    ) -> Tensor:
        """The mixed values [R, H D] of all rows, whose keys and values are stored."""
        from lacuna_kernels.gpu.attend import attend
        from lacuna_kernels.gpu.heads import RowPlaces, place_heads

        config, layer = self.config, self.layers[index]
        assert isinstance(layer.qkv, GpuLinear)
        eps, both = config.rms_norm_eps, (layer.q_norm, layer.k_norm)
        norms = None if both[0] is None or both[1] is None else (both[0], both[1], eps)
        mixed, first = list[Tensor](), 0
        for spot in spots:
            rows = slice(first, first := first + spot.count)
            heads = config.num_heads, config.num_kv_heads
            placement = RowPlaces(spot.data, *heads, config.head_dim, dtype, spot.eight_bit)
            angles = self.cos, self.sin
            query = place_heads(pieces[:, rows], layer.qkv.bias, norms, angles, positions[rows], placement, index)
            if spot.wide is not None:
                mixed.append(self._wide(query, spot, spot.wide, index))
            else:
                mixed.append(attend(query, placement, angles, index, spot.most).flatten(1))
        return mixed[0] if len(mixed) == 1 else torch.cat(mixed)

    def _spots(self, parts: Sequence[PassPart]) -> Iterator[Spot]:
        """Wide parts one by one, and neighbouring others together."""
        from lacuna_kernels.gpu import heads

        repeats = self.config.num_heads // self.config.num_kv_heads
        arena = arena_of(parts[0])
        device, eight_bit = arena.keys.device, bool(arena.scales)
        for few, neighbours in groupby(parts, lambda part: part.count <= MAX_ROWS):
            group = list(neighbours)
            if few:
                found = placed(group)
                data = torch.from_numpy(found.numbers).to(device)
                yield Spot(len(found.numbers), data, found.most, eight_bit, placed=found)
                continue
            for part in group:
                arena = arena_of(part)
                end = arena.tail + part.count
                counts = np.full(part.count, end)
                own = heads.numbers(arena.keys, arena.values, arena.tail, counts, scales=arena.scales)
                data = torch.from_numpy(own).to(device)
                rotation = None if part.moved is None else part.moved.rotation(self.cos, self.sin)
                mask = None if part.causal else part.shown(end, device)
                folded = None if mask is None else fold_mask(mask, repeats, arena.dtype)
                yield Spot(part.count, data, eight_bit=eight_bit, wide=part, folded=folded, rotation=rotation)

    def _wide(self, query: Tensor, spot: Spot, part: PassPart, index: int) -> Tensor:
        """Attention [R, H D] of many rows, whose keys and values the arena has."""
        arena = arena_of(part)
        keys, values = arena.read(index, slice(0, arena.tail + part.count))
        if spot.rotation is not None:
            keys = spot.rotation(keys)
        found = attention(query.transpose(0, 1)[None], keys, values, spot.folded, causal=spot.folded is None)
        return found[0].transpose(0, 1).flatten(1)
