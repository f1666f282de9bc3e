"""The transformer: one forward pass for contexts, canvases and whole sequences.

A pass takes rows of hidden states at given positions, puts their keys and values into a store, and attends to the keys
and values that the store returns. Uses differ only in the arguments: the weights, and the mask.
"""

import copy
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels import FoldedMask, add_rms_norm, attention, fold_mask, gpu, rms_norm, rotary
from lacuna_kernels.native import (
    LINEARS,
    WIDTH,
    AddedRows,
    KeptRows,
    LayerParts,
    NativeKernels,
    NativeLayers,
    PackedPair,
)
from lacuna_model.core.context import finished
from lacuna_model.network import gpu_layers, linear
from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.devices import HOST
from lacuna_model.network.gpu_layers import ROWS, Capture, Digest, GpuLayers, Graphs, PassRead, additions, cuda_graph
from lacuna_model.network.linear import Layer, LayerAdditions, Linear, NativeLinear, Pair, WithAdditions


class Rotations:
    """Cosines and sines of every position, computed once. [max_positions, D]"""

    def __init__(self, config: ModelConfig, device: torch.device) -> None:
        exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
        positions = torch.arange(config.max_positions, dtype=torch.float64) / config.rope_scale
        angles = torch.outer(positions, config.rope_theta**-exponents)
        angles = torch.cat((angles, angles), dim=-1)
        self.cos, self.sin = angles.cos().float().to(device), angles.sin().float().to(device)

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines for ``positions`` [..., R], shaped [..., 1, R, D] to broadcast over heads."""
        return self.cos[positions].unsqueeze(-3), self.sin[positions].unsqueeze(-3)

    def turns(self, positions: Tensor, parts: Sequence[PassPart]) -> tuple[Tensor, Tensor]:
        """Cosines and sines [T, R, D] of rows at ``positions`` [R], on the host, for each distance of keys of a part.

        The first are for keys that have not moved. A key that a row does not attend to may be at any distance.
        """
        moved = [part.moved for part in parts]
        most = max((len(one.distances) for one in moved if one is not None), default=1)
        places = positions.expand(most, -1).clone()
        if most > 1:
            for own, one in zip(places.split_with_sizes([part.count for part in parts], dim=1), moved, strict=True):
                if one is not None:
                    own[: len(one.distances)] -= torch.from_numpy(one.distances)[:, None]
            places.clamp_(0, len(self.cos) - 1)
        return self.cos[places], self.sin[places]


class Network:
    """What readers and passes need of a model's layers, whoever runs them: :class:`Transformer`, or a library.

    The ``head`` makes logits [..., V] of states, of its ``outputs`` V: a model that only drafts has those of the first
    tokens alone. States and logits are on the ``device``; if it ``is_asynchronous``, a pass that was begun goes on
    while the host does other things. A pass may have mask rows, whose inputs are ``masks`` [n, H]. In a pass of at most
    ``exact_rows``, if there is a limit, a row's result does not depend on the others.
    """

    config: ModelConfig
    head: Linear
    outputs: int
    device = HOST
    is_asynchronous = False
    masks: Tensor | None = None
    exact_rows: int | None = None

    def read(
        self,
        ids: Sequence[int],
        positions: Sequence[int],
        parts: Sequence[PassPart],
        early: Sequence[bool] = (),
        digest: Digest | None = None,
    ) -> PassRead:
        """Read tokens ``ids`` [R] at rotary ``positions`` [R]; the ``parts`` hold all rows, in order.

        -j stands for mask row j. A ``digest`` says what may be kept of the logits, with no end after ``early`` rows.
        """
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Transformer(Network):
    """A decoder-shaped transformer over explicit parts, so that linears may be dense or quantised."""

    config: ModelConfig
    layers: list[Layer]
    embed: Linear
    final_norm: Tensor
    head: Linear
    outputs: int
    rotations: Rotations
    added: Mapping[str, LayerAdditions] = field(default_factory=dict)
    kernels: NativeKernels | None = None
    _native: NativeLayers | None = None
    _gpu: GpuLayers | None = None
    _graphs: Graphs | None = None
    _faster: "Callable[[Transformer], Transformer] | None" = None  # what gave it the kernels that it has

    def __post_init__(self) -> None:
        self.device = self.final_norm.device
        self.is_asynchronous = self.device != HOST

    def read(
        self,
        ids: Sequence[int],
        positions: Sequence[int],
        parts: Sequence[PassPart],
        early: Sequence[bool] = (),
        digest: Digest | None = None,
    ) -> PassRead:
        """As :meth:`Network.read`; rows of tokens have the additions of the kinds that their parts name.

        Their masks may be in host memory. On a GPU few rows of arenas are a recorded graph, which includes the head and
        the ``digest``; other passes end with the states.
        """
        added, masked = self._added(ids, parts), any(token < 0 for token in ids)
        if self._graphs is not None and len(ids) <= ROWS[-1] and gpu_layers.takes(parts):
            return self._graphs.read(ids, positions, parts, early, added, digest)
        x = self.embedded(torch.tensor([ids], device=self.device), masked)
        places = torch.tensor(positions, device=self.device)
        return PassRead(self.hidden(x, places, parts, added)[0])

    def embedded(self, ids: Tensor, masked: bool) -> Tensor:
        """The inputs [..., R, H] of rows ``ids`` [..., R], among which there may be mask rows if ``masked``."""
        if self.masks is None or not masked:
            return self.embed(ids)
        x = self.embed(ids.clamp(min=0))
        return torch.where(ids[..., None] < 0, self.masks[(-1 - ids).clamp(min=0)].to(x.dtype), x)

    def _added(self, ids: Sequence[int], parts: Sequence[PassPart]) -> list[AddedRows]:
        """Which rows of a pass have which additions; raises ValueError where the model has none of the kind."""
        if not any(part.kinds for part in parts) and all(token >= 0 for token in ids):
            return []
        kinds = [kind for part in parts for kind in part.kinds or ("",) * part.count]
        return linear.spans_of(ids, kinds, list(self.added))

    def hidden(
        self, x: Tensor, positions: Tensor, parts: Sequence[PassPart], added: Sequence[AddedRows] = ()
    ) -> Tensor:
        """Hidden states [B, R, H] after all layers and the final norm.

        ``x`` [B, R, H] are embeddings, ``positions`` [R] or [B, R] the rows' rotary positions. The ``parts`` hold all R
        rows, in order; those of ``added`` have additions.
        """
        kept = self._in_native_form(x, parts)
        if self._native is not None and kept:
            turns = self.rotations.turns(positions.view(-1), parts)
            x = finished(self._native.in_turns(x[0], *turns, kept, added))[None]
        elif self._gpu is not None and gpu_layers.takes(parts) and len(x) == 1 and gpu.takes(x):
            return self._gpu(x[0], positions.view(-1), parts, added)[None]
        else:
            x = finished(self._in_turns(x, positions, parts, added))
        return rms_norm(x, self.final_norm, self.config.rms_norm_eps)

    def keep(self, x: Tensor, positions: Tensor, parts: Sequence[PassPart]) -> Generator[None, None, None]:
        """Put the keys and values of rows into their stores, as :meth:`hidden` does, with a pause after each layer.

        No other pass may use the stores before the end.
        """
        kept = self._in_native_form(x, parts)
        if self._native is not None and kept:
            turns = self.rotations.turns(positions.view(-1), parts)
            yield from self._native.in_turns(x[0], *turns, kept, layers=1, kept_alone=True)
        else:
            yield from self._in_turns(x, positions, parts)

    def _in_native_form(self, x: Tensor, parts: Sequence[PassPart]) -> list[KeptRows]:
        """The parts in the native kernels' form; none where these cannot have them."""
        arenas = [part.store for part in parts if part.store is not None and part.store.keys.dtype is torch.bfloat16]
        if self._native is None or len(arenas) < len(parts) or len(x) != 1:
            return []
        return [_kept(part, one) for part, one in zip(parts, arenas, strict=True)]

    def _in_turns(
        self, x: Tensor, positions: Tensor, parts: Sequence[PassPart], added: Sequence[AddedRows] = ()
    ) -> Generator[None, None, Tensor]:
        """The rows after all layers, with a pause after each."""
        cos, sin = self.rotations.at(positions)
        repeats = self.config.num_heads // self.config.num_kv_heads
        sizes = [part.count for part in parts]
        folded: list[FoldedMask | None] = []
        rotations: list[Callable[[Tensor], Tensor] | None] = []
        for index, plain in enumerate(self.layers):
            if index:
                yield
            layer = _with_additions(plain, [of[index] for of in self.added.values()], added) if added else plain
            mixed: list[Tensor] = []
            rows = (states.split_with_sizes(sizes, dim=2) for states in project(layer, x, cos, sin))
            for place, (part, query, key, value) in enumerate(zip(parts, *rows, strict=True)):
                keys, values = (key, value) if part.store is None else part.store.exchange(index, key, value)
                if not index:
                    mask = part.shown(keys.shape[2], keys.device)
                    folded.append(None if mask is None else fold_mask(mask, repeats, keys.dtype))
                    moved = part.moved
                    rotations.append(None if moved is None else moved.rotation(self.rotations.cos, self.rotations.sin))
                if (rotation := rotations[place]) is not None:
                    keys = rotation(keys)
                mixed.append(attention(query.to(keys.dtype), keys, values, folded[place]))
            x = finish(layer, x, torch.cat(mixed, dim=2) if len(mixed) > 1 else mixed[0])
        return x

    def with_additions(self, kind: str, layers: LayerAdditions, masks: Tensor | None = None) -> "Transformer":
        """The same, whose passes may have rows of a kind; with fast kernels as this one has.

        Those of masks have the inputs ``masks`` [n, H].
        """
        other = copy.copy(self)
        other.masks = self.masks if masks is None else masks
        # Those of masks are the first, whatever came first.
        other.added = dict(sorted({**self.added, kind: layers}.items(), key=lambda one: one[0] != linear.MASKS))
        return other if self._faster is None else self._faster(other)

    def on_gpu(self, capture: Capture | None = None) -> "Transformer":
        """The same with fused kernels for GPUs over an arena, where they support all layers.

        Passes of few rows are recorded as graphs by ``capture``, which is :func:`cuda_graph` on a CUDA device. Wider
        ones have products and attention of another order.
        """
        if not gpu.takes(self.final_norm) or not all(map(gpu_layers.runs_on_gpu, self.layers)):
            return self
        other, rotations = copy.copy(self), self.rotations
        added = [[additions(layer, of[index]) for of in self.added.values()] for index, layer in enumerate(self.layers)]
        masks = 0 if linear.MASKS in self.added else None
        other._gpu = GpuLayers(self.config, self.layers, self.final_norm, rotations.cos, rotations.sin, added, masks)
        capture = capture or (cuda_graph if gpu.runs_on(self.device) else None)
        other._graphs = None if capture is None else Graphs(other._gpu, other.embedded, self.head, capture)
        other.exact_rows = ROWS[-1]
        other._faster = partial(Transformer.on_gpu, capture=capture)
        return other

    def native(self, kernels: NativeKernels) -> "Transformer":
        """The same with several layers per call of ``kernels`` over a bfloat16 arena, where they support all layers."""
        added = [[_packed(of[index]) for of in self.added.values()] for index in range(len(self.layers))]
        parts = [part for part in map(_parts, self.layers, added) if part is not None]
        if self.config.head_dim % WIDTH or len(parts) < len(self.layers):
            return self
        config, other = self.config, copy.copy(self)
        other._native = NativeLayers(kernels, parts, config.num_heads, config.num_kv_heads, config.rms_norm_eps)
        other.kernels, other._faster = kernels, partial(Transformer.native, kernels=kernels)
        return other

    @property
    def is_native(self) -> bool:
        """Whether the layers run in native kernels."""
        return self.kernels is not None


def project(layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Query [B, H, R, D], key and value [B, G, R, D] of a layer's rows."""
    config = layer.config
    batch, rows, _ = x.shape
    states = layer.qkv(rms_norm(x, layer.attn_norm, config.rms_norm_eps))
    states = states.view(batch, rows, -1, config.head_dim).transpose(1, 2)
    heads = (config.num_heads, config.num_kv_heads)
    turned, value = states.split_with_sizes((sum(heads), config.num_kv_heads), dim=1)
    if layer.q_norm is not None and layer.k_norm is not None:
        weights = (layer.q_norm, layer.k_norm)
        pairs = zip(turned.split_with_sizes(heads, dim=1), weights, strict=True)
        turned = torch.cat([rms_norm(part, weight, config.rms_norm_eps) for part, weight in pairs], dim=1)
    query, key = rotary(turned, cos, sin).split_with_sizes(heads, dim=1)
    return query, key, value


def finish(layer: Layer, x: Tensor, mixed: Tensor) -> Tensor:
    """The layer's output [B, R, H], given that of attention [B, H, R, D]."""
    batch, rows, _ = x.shape
    update = layer.output(mixed.transpose(1, 2).reshape(batch, rows, -1).to(x.dtype))
    x, normed = add_rms_norm(x, update, layer.mlp_norm, layer.config.rms_norm_eps)
    gate, up = layer.gate_up(normed).chunk(2, dim=-1)
    return x + layer.down(F.silu(gate) * up)


def _with_additions(layer: Layer, added: Sequence[Mapping[str, Pair]], spans: Sequence[AddedRows]) -> Layer:
    """A layer whose linears have the additions of each kind in the rows of the ``spans``."""
    linears: dict[str, Any] = {
        name: WithAdditions(getattr(layer, name), [kind[name] for kind in added], spans) for name in added[0]
    }
    return replace(layer, **linears)


def _kept(part: PassPart, arena: Arena) -> KeptRows:
    """A part in the kernels' form."""
    mask = part.shown(arena.tail + part.count, arena.keys.device)
    folded = None if mask is None else fold_mask(mask, 1, arena.keys.dtype)
    runs = None if part.moved is None else part.moved.runs
    return KeptRows(part.count, arena.keys, arena.values, arena.tail, folded, runs)


def _packed(added: Mapping[str, Pair]) -> dict[str, PackedPair]:
    """The additions in the kernels' form; empty where they differ, so that no row may have them."""
    return {
        name: (pair.low.packed, pair.high.packed)
        for name, pair in added.items()
        if isinstance(pair.low, NativeLinear) and isinstance(pair.high, NativeLinear)
    }


def _parts(layer: Layer, added: Sequence[Mapping[str, PackedPair]]) -> LayerParts | None:
    """A layer in the kernels' form: native linears, float32 norms, none for query and key; None where it differs."""
    linears = {name: one.packed for name in LINEARS if isinstance(one := getattr(layer, name), NativeLinear)}
    is_wide = {layer.attn_norm.dtype, layer.mlp_norm.dtype} == {torch.float32}
    if layer.q_norm is not None or not is_wide or len(linears) < len(LINEARS):
        return None
    return LayerParts(layer.attn_norm, layer.mlp_norm, linears, [kind for kind in added if kind])
