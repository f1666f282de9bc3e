"""Turns a model's weights into the form that passes read, a layer at a time.

The kernels in C read the file's 4-bit weights unchanged, and all others in 8 bit. A model that only drafts may be less
exact: it has all layers in 4 bit and a part of the head, since reading weights is most of the time of a pass. A GPU
reads bfloat16, or 8-bit weights with activations in bfloat16.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Protocol

import torch
from torch import Tensor

from lacuna_kernels.native import WIDTH
from lacuna_kernels.quantised import GROUP, FourBitWeight, quantized, stacked
from lacuna_model.loading.families import Weights
from lacuna_model.network.assembly import FUSED, State, fuse_layer, layer_of
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import quantize_rows

# The tokens of code are nearly all among the first of the vocabulary, which has frequent ones first: of those that the
# 1.5B writes in held-out files, 97 %. A multiple of ``WIDTH``.
FREQUENT_TOKENS = 49_152


class Packing(Protocol):
    """The order in which kernels read weights."""

    def packed(self, codes: Tensor, /) -> Tensor:
        """Codes int8 [out, in] in that order."""
        ...

    def packed_blocks(self, weight: FourBitWeight, /) -> Tensor:
        """A 4-bit weight in that order, uint8 [out, bytes of an output]."""
        ...


def prepared(
    state: Weights,
    config: ModelConfig,
    kernels: Packing,
    advance: Callable[[int, int], None] = lambda done, total: None,
    *,
    drafts: bool = False,
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the model by name: linears as codes and scales, packed for ``kernels`` where these can read them.

    Where embedding and head are one table, only the packed head is made. ``advance`` is called with the number of
    layers done and their total. A model that only ``drafts`` is made smaller.
    """
    head = "embedding" if config.tie_embeddings else "head"
    if not _packable(config.hidden_size, config.vocab_size):
        yield from _quantized("head", state[head]).items()
        yield "embedding", state["embedding"].half()
    else:
        if drafts:
            codes, scale = quantize_rows(state[head][:FREQUENT_TOKENS])
            yield from (("head", kernels.packed(codes)), ("head.scale", scale))
        else:
            yield from _packed("head", [head], state, kernels).items()
        if drafts or not config.tie_embeddings:
            yield from _packed("embedding", ["embedding"], state, kernels).items()
    if _packable(config.hidden_size, config.intermediate_size, *_projected(config)):
        layers = (_packed_layer(state, index, kernels, drafts) for index in range(config.num_layers))
    else:
        layers = (_narrow_layer(state, index, eight_bit=True) for index in range(config.num_layers))
    yield from _in_turn(layers, config, advance)
    yield "final_norm", state["final_norm"]


def for_gpu(
    state: State,
    config: ModelConfig,
    advance: Callable[[int, int], None] = lambda done, total: None,
    *,
    eight_bit: bool = False,
    drafts: bool = False,
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor by name as a GPU reads it; one layer at a time is in float32.

    Linears are in bfloat16, or with ``eight_bit`` codes and a scale for every output. Where embedding and head are one
    table in bfloat16, it is named head. A model that only ``drafts`` has a part of the head.
    """
    head = state["embedding" if config.tie_embeddings else "head"]
    yield from _narrow("head", head[:FREQUENT_TOKENS] if drafts else head, eight_bit).items()
    del head
    if drafts or eight_bit or not config.tie_embeddings:
        yield "embedding", state["embedding"].bfloat16()
    layers = (_narrow_layer(state, index, eight_bit) for index in range(config.num_layers))
    yield from _in_turn(layers, config, advance)
    yield "final_norm", state["final_norm"]


def _in_turn(
    layers: Iterator[dict[str, Tensor]], config: ModelConfig, advance: Callable[[int, int], None]
) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the layers by name."""
    for index, layer in enumerate(layers):
        advance(index, config.num_layers)
        yield from ((f"layers.{index}.{name}", tensor) for name, tensor in layer.items())
    advance(config.num_layers, config.num_layers)


def _narrow(name: str, tensor: Tensor, eight_bit: bool) -> dict[str, Tensor]:
    """A linear in bfloat16 or in 8 bit, a bias in bfloat16; norms stay in float32."""
    if tensor.ndim == 2 and eight_bit:
        return _quantized(name, tensor)
    return {name: tensor.bfloat16() if tensor.ndim == 2 or name.endswith(".bias") else tensor}


def _narrow_layer(state: State, index: int, eight_bit: bool) -> dict[str, Tensor]:
    layer = fuse_layer({own: state[name] for own, name in layer_of(state, index).items()})
    return {part: kept for name, tensor in layer.items() for part, kept in _narrow(name, tensor, eight_bit).items()}


def packable(config: ModelConfig) -> bool:
    """Whether kernels in C read all linears of a model."""
    return _packable(config.hidden_size, config.vocab_size, config.intermediate_size, *_projected(config))


def _packable(*sizes: int) -> bool:
    return not any(size % WIDTH for size in sizes)


def _projected(config: ModelConfig) -> tuple[int, int]:
    """The numbers of query channels and of key (and value) channels."""
    return config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim


def _packed_layer(state: Weights, index: int, kernels: Packing, drafts: bool) -> dict[str, Tensor]:
    """One layer in the form that the kernels in C read."""
    names = layer_of(state, index)
    layer = fuse_layer({own: state[name] for own, name in names.items() if not own.endswith("_proj")})
    for name, parts in FUSED.items():
        layer |= _packed(name, [names[part] for part in parts], state, kernels, drafts)
    return layer


def _packed(
    name: str, parts: Sequence[str], state: Weights, kernels: Packing, drafts: bool = False
) -> dict[str, Tensor]:
    """The tensors of the linear ``name``, whose outputs are those of ``parts``.

    Leading 4-bit parts stay in 4 bit; where the model only ``drafts``, the others are made so.
    """

    def four_bit(part: str) -> FourBitWeight | None:
        found = state.four_bit(part)
        if found is not None or not drafts:
            return found
        weight = state[part]
        return quantized(weight) if weight.shape[1] % (2 * GROUP) == 0 else None

    small = [found for found in takewhile(bool, map(four_bit, parts)) if found]
    large = [state[part] for part in parts[len(small) :]]
    tensors = {}
    if small:
        tensors[name + ".blocks"] = kernels.packed_blocks(stacked(small))
    codes, scale = quantize_rows(torch.cat(large or [torch.empty((0, small[0].codes.shape[1]))]))
    return tensors | {name: kernels.packed(codes), name + ".scale": scale}


def _quantized(name: str, weight: Tensor) -> dict[str, Tensor]:
    codes, scale = quantize_rows(weight)
    return {name: codes, name + ".scale": scale}
