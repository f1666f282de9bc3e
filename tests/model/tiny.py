"""A tiny random model with a real byte-level tokenizer, so that no test needs a download."""

from collections.abc import Mapping

import torch
from torch import Tensor

from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.network.assembly import build_transformer, fuse
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import quantize_rows
from lacuna_model.network.transformer import Transformer
from lacuna_model.tokenizer import Vocabulary

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# Tokens of several bytes, in the byte-level alphabet (Ġ is a space, Ċ a newline).
WORDS = (
    "ĠĠ", "ĠĠĠĠ", "ĊĊ", "def", "Ġdef", "return", "Ġreturn", "self", "Ġself", "import", "Ġimport", "class", "for",
    "Ġfor", "Ġin", "Ġ=", "Ġ+", "():", "Ġx", "Ġy", "name", "value", "Ġvalue", "total", "Ġtotal", "print", "Ġif", "Ġnot",
)  # fmt: skip
CODE = '''import math


def area(radius):
    """The area of a circle."""
    return math.pi * radius ** 2


def total(values):
    value = 0
    for x in values:
        value = value + x
    return value


class Account:
    def __init__(self, name):
        self.name = name
        self.total = 0

    def add(self, value):
        if not value:
            return
        self.total = self.total + value
        print(self.name, self.total)
'''


def vocabulary() -> Vocabulary:
    alphabet = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 256), *range(256, 324))]
    tokens = [*SPECIALS, *alphabet]
    merges = []
    for word in WORDS:
        halves = [(word[:2], word[2:])] if word == "ĠĠĠĠ" else [(word[:1], word[1:])] if word[1:] in tokens else []
        for merge in halves or [(word[:end], word[end]) for end in range(1, len(word))]:
            if "".join(merge) not in tokens:
                merges.append(merge)
                tokens.append("".join(merge))
    return Vocabulary(tuple(tokens), tuple(merges), special_ids=frozenset({0, 1, 2}), eog_id=2)


VOCABULARY = vocabulary()
CONFIG = ModelConfig(
    num_layers=3,
    hidden_size=48,
    intermediate_size=96,
    num_heads=6,
    num_kv_heads=2,
    head_dim=8,
    vocab_size=len(VOCABULARY.tokens),
    rope_theta=10_000.0,
    max_positions=4096,
)


def state(config: ModelConfig = CONFIG, seed: int = 0) -> dict[str, Tensor]:
    """A checkpoint with random weights, large enough that every token of the context shows in the logits."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    def linear(out: int, width: int) -> Tensor:
        return random(out, width) * width**-0.5

    def norm(width: int) -> Tensor:
        return 1 + 0.1 * random(width)

    hidden, heads, kv_heads = config.hidden_size, config.num_heads, config.num_kv_heads
    tensors = {"embedding": 0.5 * random(config.vocab_size, hidden), "final_norm": norm(hidden)}
    for i in range(config.num_layers):
        layer = {
            "attn_norm": norm(hidden),
            "q_proj": linear(heads * config.head_dim, hidden),
            "k_proj": linear(kv_heads * config.head_dim, hidden),
            "v_proj": linear(kv_heads * config.head_dim, hidden),
            "o_proj": linear(hidden, heads * config.head_dim),
            "mlp_norm": norm(hidden),
            "gate_proj": linear(config.intermediate_size, hidden),
            "up_proj": linear(config.intermediate_size, hidden),
            "down_proj": linear(hidden, config.intermediate_size),
        }
        if config.attention_bias:
            layer |= {f"{name}.bias": random(len(layer[name])) for name in ("q_proj", "k_proj", "v_proj")}
        if config.qk_norm:
            layer |= {name: norm(config.head_dim) for name in ("q_norm", "k_norm")}
        tensors |= {f"layers.{i}.{name}": tensor for name, tensor in layer.items()}
    if not config.tie_embeddings:
        tensors["head"] = linear(config.vocab_size, hidden)
    return tensors


def transformer(config: ModelConfig = CONFIG, seed: int = 0) -> Transformer:
    return build_transformer(config, fuse(state(config, seed), config))


def quantized(fused: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same model in 8 bit: linears as codes and scales, the embedding in half precision."""
    found: dict[str, Tensor] = {}
    for name, tensor in fused.items():
        if name == "embedding":
            found[name] = tensor.half()
        elif tensor.ndim == 2:
            found[name], found[f"{name}.scale"] = quantize_rows(tensor)
        else:
            found[name] = tensor
    return found


def hidden(
    model: Transformer, x: Tensor, positions: Tensor, mask: Tensor | None = None, store: Arena | None = None
) -> Tensor:
    """Hidden states [B, R, H] of embeddings that are one part of a pass; without a store, no keys are kept."""
    return model.hidden(x, positions, [PassPart(x.shape[1], store, mask)])
