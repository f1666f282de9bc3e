"""The layers of a transformer on a GPU, in ten launches each for a pass of few rows, which is recorded as a graph.

The residual has the precision of the keys and values (bfloat16). A product of few rows comes in pieces that the next
kernel adds. So a layer is: the product for q, k, v; bias, rotary and the writing of keys and values; attention over
blocks of keys; their merging; the output's product; addition and norm; the product for gate and up; the gate; the
product down; addition and norm. Where rows have additions, each product has one launch more, which makes these; those
of several kinds are torch's products. Wide passes differ in attention and in the products, which are torch's.

A graph is one launch from token ids to what is kept of the logits. It is recorded for a number of rows and a length of
context, each rounded up, when a pass first needs it. All that differs from pass to pass is data that it reads from one
block of memory, which one copy fills: tokens, positions, and the addresses of keys and values, and of the lists of what
the rows attend to, of which another copy brings the ends. So it serves all documents, and several in one pass. Rows
beyond those of a pass are padding: they write nothing, and attend to nothing.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels import MAX_ROWS, FoldedMask, attention, fold_mask, rms_norm
from lacuna_kernels.native import AddedRows
from lacuna_model.network.arena import Arena, PassPart, SeenRows, attended_in, in_order, of_mask
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import DenseLinear, GpuLinear, Layer, Linear, Pair

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
            from lacuna_kernels.gpu.product import added_product

            ((_, addition, gate),) = added
            return added_product(x, linear.weight, linear.scale, addition, gate)
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


ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 192)
# The shortest length of context that a graph is recorded for: the default window with its snippets is shorter.
LEAST_LENGTH = 2048
# Numbers of a row in a graph's input: of its place; and with its token, position, whether it is early, and additions.
PLACE, NUMBERS = 11, 15
# So many graphs are kept, those used last.
MAX_GRAPHS = 48

# Takes the launches of a pass, and returns a function that repeats them.
Capture = Callable[[Callable[[], None]], Callable[[], None]]
# Makes the inputs [..., H] of rows [...], and is told whether there may be mask rows among them.
Embed = Callable[[Tensor, bool], Tensor]
Block = TypeVar("Block", Tensor, NDArray[np.int64])

# The memory that all graphs share: no two run at a time, and what a pass leaves is read before the next one.
pool = functools.cache(torch.cuda.graph_pool_handle)


def cuda_graph(run: Callable[[], None]) -> Callable[[], None]:
    """Record the launches of ``run`` as a CUDA graph. It runs once before, since kernels are compiled at first use."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool(), capture_error_mode="thread_local"):  # other threads may use the device
        run()
    replay: Callable[[], None] = graph.replay
    return replay


class Digest(Protocol):
    """Says what is kept of a pass's logits; it is hashable, since graphs are kept by it."""

    @property
    def width(self) -> int:
        """How many numbers are kept of a row."""

    def restricted(self, logits: Tensor, early: Tensor) -> Tensor:
        """The logits [R, V], changed in place, without tokens that cannot come next; no end where it is ``early``."""

    def rows(self, logits: Tensor) -> Tensor:
        """What is kept of each row of such logits: float32 [R, ``width``]."""


@dataclass(frozen=True, slots=True)
class PassRead:
    """What a pass has read: ``states`` [R, H], and where a :class:`Digest` was recorded with it, what that has kept.

    The ``logits`` [R, V] and the ``kept`` rows [R, width] stay until the next pass. One that has ``recorded`` a graph
    took longer than others.
    """

    states: Tensor
    logits: Tensor | None = None
    kept: Tensor | None = None
    recorded: bool = False


def sections(block: Block) -> tuple[Block, Block, Block, Block, Block]:
    """The parts of a graph's input [15 R]: placements [R, 11], tokens, positions, early rows [R], and additions [R].

    Of a row's additions the kind is counted from 1 on; 0 is none.
    """
    rows = len(block) // NUMBERS
    lists = block[PLACE * rows :].reshape(4, rows)
    return block[: PLACE * rows].reshape(rows, PLACE), lists[0], lists[1], lists[2], lists[3]


@dataclass(slots=True)
class Recorded:
    """A graph's memory, at fixed addresses: what it reads, as one ``block``, and what it leaves behind."""

    block: Tensor
    states: Tensor
    kept: Tensor | None
    replay: Callable[[], None] | None = None
    logits: Tensor | None = None


@dataclass(eq=False, slots=True)
class Graphs:
    """The recorded passes of one model: its ``layers``, between the ``embed`` and the ``head`` of its tokens."""

    layers: GpuLayers
    embed: Embed
    head: Linear
    capture: Capture = cuda_graph
    _kept: dict[tuple[int, int, torch.dtype, tuple[int, ...], Digest | None], Recorded] = field(default_factory=dict)

    def read(
        self,
        ids: Sequence[int],
        positions: Sequence[int],
        parts: Sequence[PassPart],
        early: Sequence[bool],
        added: Sequence[AddedRows],
        digest: Digest | None,
    ) -> PassRead:
        """Read at most ``ROWS[-1]`` rows, as :meth:`.Transformer.read` does; the states are a copy.

        ``early`` are the rows after which no end may come. Of those of ``added`` with the first kind -j stands for mask
        row j.
        """
        count = len(ids)
        rows = next(size for size in ROWS if size >= count)
        where = placed(parts)
        length = max(LEAST_LENGTH, 1 << (where.most - 1).bit_length())
        keys = arena_of(parts[0]).keys
        key = rows, length, keys.dtype, tuple(sorted({span.kind for span in added})), digest
        one = self._kept.pop(key, None) or self._memory(rows, keys, digest)
        # Memory of its own for every pass: the copy from it may still run when the next pass is put together.
        packed = torch.zeros(len(one.block), dtype=torch.int64, pin_memory=keys.is_cuda)
        placements, *lists, kinds = sections(packed.numpy())
        placements[:count] = where.numbers
        for section, given in zip(lists, (ids, positions, early), strict=True):
            section[: len(given)] = given
        for span in added:
            kinds[span.first : span.first + span.rows] = 1 + span.kind
        one.block.copy_(packed, non_blocking=True)
        is_new = one.replay is None
        one.replay = one.replay or self._record(one, *key)
        self._kept[key] = one
        one.replay()
        states = one.states[:count].clone()
        if one.kept is None or one.logits is None:
            return PassRead(states, recorded=is_new)
        return PassRead(states, one.logits[:count], one.kept[:count], recorded=is_new)

    def _record(
        self,
        one: Recorded,
        rows: int,
        length: int,
        stored: torch.dtype,
        kinds: tuple[int, ...],
        digest: Digest | None,
    ) -> Callable[[], None]:
        placements, ids, positions, early, added = sections(one.block)
        dtype = attended_in(stored)

        def run() -> None:
            spot = Spot(rows, placements, length, dtype is not stored)
            gates = {kind: (added == 1 + kind).to(dtype)[:, None] for kind in kinds}
            x = self.embed(ids, 0 in kinds).to(dtype)
            one.states.copy_(self.layers.states(x, positions, [spot], gates))
            if digest is not None and one.kept is not None:
                one.logits = digest.restricted(self.head(one.states), early != 0)
                one.kept.copy_(digest.rows(one.logits))

        while len(self._kept) >= MAX_GRAPHS:
            del self._kept[next(iter(self._kept))]
        return self.capture(run)

    def _memory(self, rows: int, keys: Tensor, digest: Digest | None) -> Recorded:
        """Memory for a graph, which passes in inference mode and others may use."""

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, device=keys.device, dtype=dtype)

        with torch.inference_mode(False):
            states = zeros(rows, self.layers.config.hidden_size)
            kept = None if digest is None else zeros(rows, digest.width)
            return Recorded(zeros(NUMBERS * rows, dtype=torch.int64), states, kept)
