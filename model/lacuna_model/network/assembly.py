"""Builds a transformer from tensors, with each linear in the form that its tensors have."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels import gpu
from lacuna_kernels.native import WIDTH, NativeKernels
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import DenseLinear, GpuLinear, Int8Linear, Linear, NativeLinear
from lacuna_model.network.transformer import Layer, Rotations, Transformer

# The fused linears of a layer, and the projections whose rows each stacks.
FUSED = {
    "qkv": ("q_proj", "k_proj", "v_proj"),
    "output": ("o_proj",),
    "gate_up": ("gate_proj", "up_proj"),
    "down": ("down_proj",),
}

State = Mapping[str, Tensor]


def fuse(state: State, config: ModelConfig) -> dict[str, Tensor]:
    """The tensors of a checkpoint with the projections of each layer stacked according to :data:`FUSED`."""
    fused = {name: state[name] for name in state if "proj" not in name}
    for layer in range(config.num_layers):
        for name, parts in FUSED.items():
            for suffix in ("", ".bias"):
                tensors = [state.get(f"layers.{layer}.{part}{suffix}") for part in parts]
                present = [tensor for tensor in tensors if tensor is not None]
                if len(present) == len(parts):
                    fused[f"layers.{layer}.{name}{suffix}"] = torch.cat(present)
    if config.tie_embeddings:
        fused["head"] = fused["embedding"]
    return fused


def narrow(fused: State) -> dict[str, Tensor]:
    """The same with every linear in bfloat16; embedding and norms are unchanged."""
    return {
        name: tensor.bfloat16() if name.endswith(".bias") or (tensor.ndim == 2 and name != "embedding") else tensor
        for name, tensor in fused.items()
    }


def linear_from(tensors: State, name: str, kernels: NativeKernels | None = None) -> Linear:
    """The linear ``name`` in the form of its tensors; on a CPU, 8 and 4 bit run on ``kernels`` if they support it."""
    weight, scale, bias = tensors[name], tensors.get(name + ".scale"), tensors.get(name + ".bias")
    if gpu.reads(weight) and weight.dtype is not torch.float32:
        return GpuLinear(weight, scale, bias)
    if scale is None:
        return DenseLinear(weight, bias)
    if kernels is None or any(size % WIDTH for size in weight.shape):
        return Int8Linear(weight, scale, bias)
    return NativeLinear(kernels, weight, scale, bias, tensors.get(name + ".blocks"))


def build_layer(config: ModelConfig, tensors: State, prefix: str, make: Callable[[str], Linear]) -> Layer:
    """The layer whose tensors have names that begin with ``prefix``; ``make`` makes a linear by its name."""
    return Layer(
        config=config,
        attn_norm=tensors[prefix + "attn_norm"],
        mlp_norm=tensors[prefix + "mlp_norm"],
        q_norm=tensors.get(prefix + "q_norm"),
        k_norm=tensors.get(prefix + "k_norm"),
        **{name: make(prefix + name) for name in FUSED},
    )


def _embedding(tensors: State, head: Linear, kernels: NativeKernels | None) -> Linear:
    """The lookup of rows by token id: in the table ``embedding``, packed or not, else in the packed ``head``."""
    table = tensors.get("embedding")
    if table is None or table.dtype is torch.uint8:
        packed = head if table is None else linear_from(tensors, "embedding", kernels)
        assert isinstance(packed, NativeLinear)
        return packed.lookup
    return lambda ids: F.embedding(ids, table).float()


def build_transformer(
    config: ModelConfig,
    tensors: State,
    *,
    linear: Callable[[str], Linear] | None = None,
    kernels: NativeKernels | None = None,
) -> Transformer:
    """A transformer over fused ``tensors``; ``linear`` overrides how each linear is made from its name."""
    make = linear or (lambda name: linear_from(tensors, name, kernels))

    head = make("head")
    head = head.exact() if isinstance(head, GpuLinear) else head
    transformer = Transformer(
        config,
        layers=[build_layer(config, tensors, f"layers.{i}.", make) for i in range(config.num_layers)],
        embedding=_embedding(tensors, head, kernels),
        final_norm=tensors["final_norm"],
        head=head,
        rotations=Rotations(config, tensors["final_norm"].device),
    )
    return transformer.on_gpu() if kernels is None else transformer.native(kernels)
