"""Writes tiny random GGUF files of architectures that our own layers do not read, as llama.cpp's converter would."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace
from tests.model.fim import tiny_fim
from tests.model.gguf_files import begun, ended

from lacuna_model.network.config import ModelConfig

HIDDEN, HEADS, SHARED, DIM, INNER, LAYERS, EXPERTS = 64, 4, 2, 16, 96, 2, 4
CONFIG = ModelConfig(
    num_layers=LAYERS,
    hidden_size=HIDDEN,
    intermediate_size=INNER,
    num_heads=HEADS,
    num_kv_heads=SHARED,
    head_dim=DIM,
    vocab_size=len(tiny_fim.VOCABULARY.tokens),
    rope_theta=10_000.0,
    max_positions=2048,
)

Shapes = dict[str, tuple[int, ...]]
ATTENTION: Shapes = {
    **{f"{name}_norm.weight": (HIDDEN,) for name in ("attn", "ffn")},
    **{"attn_q.weight": (HEADS * DIM, HIDDEN), "attn_output.weight": (HIDDEN, HEADS * DIM)},
    **{f"attn_{part}.weight": (SHARED * DIM, HIDDEN) for part in "kv"},
}
PLAIN: Shapes = {"ffn_up.weight": (INNER, HIDDEN), "ffn_down.weight": (HIDDEN, INNER)}
GATED: Shapes = {**PLAIN, "ffn_gate.weight": (INNER, HIDDEN)}
OF_EXPERTS: Shapes = {"ffn_gate_inp.weight": (EXPERTS, HIDDEN), "ffn_down_exps.weight": (EXPERTS, HIDDEN, INNER)}
OF_EXPERTS |= {f"ffn_{part}_exps.weight": (EXPERTS, INNER, HIDDEN) for part in ("gate", "up")}


def _biased(shapes: Shapes) -> Shapes:
    return {name.replace("weight", "bias"): shape[:1] for name, shape in shapes.items()}


LAYER: dict[str, Shapes] = {
    "qwen3moe": {**ATTENTION, **OF_EXPERTS, "attn_q_norm.weight": (DIM,), "attn_k_norm.weight": (DIM,)},
    "starcoder2": {**ATTENTION, **PLAIN, **_biased({**ATTENTION, **PLAIN})},
    "gemma": {**ATTENTION, **GATED},
    "granite": {**ATTENTION, **GATED},
}
EXPERT_FIELDS = {"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": INNER}
FIELDS: dict[str, dict[str, Any]] = {
    "qwen3moe": EXPERT_FIELDS,
    "starcoder2": {"attention.layer_norm_epsilon": 1e-5},
    "gemma": {},
    "granite": {"attention.scale": 0.25, "embedding_scale": 2.0, "residual_scale": 0.5, "logit_scale": 4.0},
}
TIED = ("gemma", "starcoder2")
NAMES = tuple(LAYER)


def write(
    path: Path,
    architecture: str,
    *,
    fields: Mapping[str, Any] | None = None,
    tokens: Sequence[str] = tiny_fim.VOCABULARY.tokens,
    seed: int = 0,
) -> Path:
    """Writes a model to ``path``. ``fields`` adds metadata or replaces the usual values; None leaves a field out."""
    random = np.random.default_rng(seed)
    vocabulary = replace(tiny_fim.VOCABULARY, tokens=tuple(tokens), pre="qwen2")
    own = {f"{architecture}.{name}": value for name, value in FIELDS[architecture].items()}
    own |= {"tokenizer.ggml.eos_token_id": 2, **(fields or {})}
    writer = begun(path, architecture, CONFIG, vocabulary, fields=own)
    for name, shape in _tensors(architecture, len(tokens)).items():
        if len(shape) == 1:
            values = np.ones(shape) if name.endswith("norm.weight") else random.normal(0, 0.1, shape)
        else:
            values = random.normal(0, 1.6 * shape[-1] ** -0.5, shape)
        writer.add_tensor(name, values.astype(np.float32))
    ended(writer)
    return path


def _tensors(architecture: str, size: int) -> Shapes:
    found: Shapes = {"token_embd.weight": (size, HIDDEN), "output_norm.weight": (HIDDEN,)}
    if architecture == "starcoder2":
        found["output_norm.bias"] = (HIDDEN,)
    if architecture not in TIED:
        found["output.weight"] = (size, HIDDEN)
    for layer in range(LAYERS):
        found |= {f"blk.{layer}.{name}": shape for name, shape in LAYER[architecture].items()}
    return found
