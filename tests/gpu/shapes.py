"""Models with random weights in the shapes of Qwen2.5-Coder, made on the device."""

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from lacuna_model.network.arena import Arena
from lacuna_model.network.assembly import build_transformer
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import DenseLinear, quantize_rows
from lacuna_model.network.transformer import PassPart, Transformer

CONTEXT: Final = 1400
ROWS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 192)
# Bytes a second that an H100 reads.
BANDWIDTH: Final = 3.0e12


def _coder(
    layers: int, hidden: int, inner: int, heads: int, groups: int, width: int, vocab: int = 151_936
) -> ModelConfig:
    return ModelConfig(
        num_layers=layers,
        hidden_size=hidden,
        intermediate_size=inner,
        num_heads=heads,
        num_kv_heads=groups,
        head_dim=width,
        vocab_size=vocab,
        rope_theta=1e6,
        rms_norm_eps=1e-6,
        attention_bias=True,
        tie_embeddings=True,
    )


SHAPES = {
    "0.5B": _coder(24, 896, 4864, 14, 2, 64),
    "1.5B": _coder(28, 1536, 8960, 12, 2, 128),
    "7B": _coder(28, 3584, 18944, 28, 4, 128, 152_064),
}
TINY = _coder(1, 16, 24, 2, 1, 8, 70)


def tensors(config: ModelConfig, device: torch.device, *, eight_bit: bool = False) -> dict[str, Tensor]:
    """The fused tensors of a random model: matrices in bfloat16, or in 8-bit codes; norms in float32."""
    generator = torch.Generator(device).manual_seed(0)
    found: dict[str, Tensor] = {}

    def matrix(name: str, outputs: int, inputs: int) -> None:
        made = torch.randn((outputs, inputs), generator=generator, device=device, dtype=torch.bfloat16) * inputs**-0.5
        if eight_bit:
            found[name], found[name + ".scale"] = quantize_rows(made.float())
        else:
            found[name] = made

    hidden, heads = config.hidden_size, config.num_heads * config.head_dim
    stacked = heads + 2 * config.num_kv_heads * config.head_dim
    for i in range(config.num_layers):
        matrix(f"layers.{i}.qkv", stacked, hidden)
        matrix(f"layers.{i}.output", hidden, heads)
        matrix(f"layers.{i}.gate_up", 2 * config.intermediate_size, hidden)
        matrix(f"layers.{i}.down", hidden, config.intermediate_size)
        found[f"layers.{i}.qkv.bias"] = torch.randn(stacked, generator=generator, device=device, dtype=torch.bfloat16)
        for norm in ("attn_norm", "mlp_norm"):
            found[f"layers.{i}.{norm}"] = 1 + 0.1 * torch.randn(hidden, generator=generator, device=device)
    matrix("head", config.vocab_size, hidden)
    table = torch.randn((config.vocab_size, hidden), generator=generator, device=device, dtype=torch.bfloat16)
    found["embedding"] = table
    found["final_norm"] = torch.ones(hidden, device=device)
    return found


def plain(config: ModelConfig, state: dict[str, Tensor]) -> Transformer:
    """The model on torch's own operators, with a residual in float32."""
    return build_transformer(config, state, linear=lambda name: DenseLinear(state[name], state.get(name + ".bias")))


def num_bytes(config: ModelConfig, *, eight_bit: bool = False) -> int:
    """Bytes of the weights that a pass reads: all matrices, the head included."""
    return config.num_weights * (1 if eight_bit else 2)


def filled_arena(config: ModelConfig, device: torch.device, length: int, seed: int = 0) -> Arena:
    """An arena whose first rows hold random keys and values."""
    arena = Arena(config, device, torch.bfloat16)
    arena.reserve(length + 100)
    generator = torch.Generator(device).manual_seed(seed)
    arena.keys.normal_(generator=generator)
    arena.values.normal_(generator=generator)
    arena.tail = length
    return arena


def reading(model: Transformer, arena: Arena, rows: int, *, causal: bool = False) -> Callable[[], Tensor]:
    """A pass over ``rows`` rows at the tail of an arena, to the logits."""
    tail = arena.tail
    ids = [row * 7919 % model.config.vocab_size for row in range(rows)]
    positions = list(range(tail, tail + rows))
    mask = None if causal else torch.ones((rows, tail + rows), dtype=torch.bool).tril(tail)

    def run() -> Tensor:
        states = model.read(ids, positions, [PassPart(rows, arena, mask, causal)]).states
        return model.head(states[-min(rows, 64) :])

    return run
