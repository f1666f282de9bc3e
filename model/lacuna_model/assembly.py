"""Builds transformers from weights: the base side, and the canvas side with its adapter merged in."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_model.config import ModelConfig
from lacuna_model.linear import DenseLinear, Int8Linear, Linear
from lacuna_model.transformer import Layer, Rotations, Transformer

# The fused linears of a layer, by the checkpoint's projections whose rows they stack.
FUSED = {
    "qkv": ("q_proj", "k_proj", "v_proj"),
    "output": ("o_proj",),
    "gate_up": ("gate_proj", "up_proj"),
    "down": ("down_proj",),
}

State = Mapping[str, Tensor]
MakeLinear = Callable[[str, Tensor, Tensor | None], Linear]


def fused_weight(state: State, layer: int, name: str) -> Tensor:
    """The stacked weight [out, in] of one fused linear."""
    return torch.cat([state[f"layers.{layer}.{part}"] for part in FUSED[name]])


def fused_bias(state: State, layer: int, name: str) -> Tensor | None:
    """The stacked bias [out] of one fused linear, or None."""
    biases = [state.get(f"layers.{layer}.{part}.bias") for part in FUSED[name]]
    return torch.cat([bias for bias in biases if bias is not None]) if None not in biases else None


def linear_for(precision: str) -> MakeLinear:
    """How a linear is built for a precision: ``int8``, ``bfloat16`` or ``float32``."""
    if precision == "int8":
        return lambda _, weight, bias: Int8Linear(weight, bias)
    dtype = {"bfloat16": torch.bfloat16, "float32": torch.float32}[precision]
    return lambda _, weight, bias: DenseLinear(weight.to(dtype), bias)


def build_transformer(config: ModelConfig, state: State, make_linear: MakeLinear, *, head: Linear | None = None) -> Transformer:
    """A transformer over ``state``; ``make_linear`` gets each fused linear's name, weight and bias."""
    device = state["embedding"].device

    def layer(i: int) -> Layer:
        prefix = f"layers.{i}."
        linears = {
            name: make_linear(f"{prefix}{name}", fused_weight(state, i, name), fused_bias(state, i, name))
            for name in FUSED
        }
        return Layer(
            attn_norm=state[prefix + "attn_norm"],
            mlp_norm=state[prefix + "mlp_norm"],
            q_norm=state.get(prefix + "q_norm"),
            k_norm=state.get(prefix + "k_norm"),
            **linears,
        )

    embedding = state["embedding"]
    head_weight = embedding if config.tie_embeddings else state["head"]
    return Transformer(
        config,
        layers=[layer(i) for i in range(config.num_layers)],
        embedding=lambda ids: F.embedding(ids, embedding),
        final_norm=state["final_norm"],
        head=head or make_linear("head", head_weight, None),
        rotations=Rotations(config, device),
    )
