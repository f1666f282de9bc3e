"""The shape of a transformer, general enough for Llama, Qwen2, Qwen3, Dream and LLaDA checkpoints."""

import math
from pathlib import Path
from typing import Any, Self

import msgspec

from lacuna_model.core.errors import WeightsError

# The positions of a model, at most: on a GPU as many as Qwen2.5-Coder was trained for, on a CPU fewer, since two cores
# read a second for every hundred of them.
MAX_POSITIONS, HOST_POSITIONS = 32_768, 16_384
# The largest sizes that are supported, several times those of known models. The kernels in C keep a row of hidden
# states, and a tile of keys of one head, on the stack of a thread.
LARGEST = {
    "num_layers": 512,
    "hidden_size": 32_768,
    "intermediate_size": 262_144,
    "num_heads": 512,
    "num_kv_heads": 512,
    "head_dim": 512,
    "vocab_size": 1_048_576,
    "max_positions": MAX_POSITIONS,
}


class ModelConfig(msgspec.Struct, frozen=True):
    """All parameters of the forward pass besides the weights.

    Positions are divided by ``rope_scale`` (linear scaling). ``attention_bias`` and ``qk_norm`` tell which tensors the
    layers have.

    Raises ValueError for a size that is not supported (:data:`LARGEST`), and for sizes that contradict each other.
    """

    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    rope_theta: float
    rope_scale: float = 1.0
    rms_norm_eps: float = 1e-5
    max_positions: int = 8192
    tie_embeddings: bool = True
    attention_bias: bool = False
    qk_norm: bool = False

    def __post_init__(self) -> None:
        for name, most in LARGEST.items():
            if not 1 <= (size := getattr(self, name)) <= most:
                raise ValueError(f"{name} is {size}; supported are 1 to {most}")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"{self.num_heads} heads do not share {self.num_kv_heads} keys evenly")
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.head_dim}; rotary positions need an even number")
        for name in ("rope_theta", "rope_scale", "rms_norm_eps"):
            if not (math.isfinite(number := getattr(self, name)) and number > 0):
                raise ValueError(f"{name} is {number}, not a positive number")

    @classmethod
    def of(cls, where: Path, **sizes: Any) -> Self:
        """The shape of the model in ``where``; raises WeightsError where it is not supported."""
        try:
            return cls(**sizes)
        except ValueError as error:
            raise WeightsError(f"{where} has a shape that is not supported: {error}") from error

    @property
    def num_weights(self) -> int:
        """The weights of all matrices, the largest part of a model."""
        heads = (2 * self.num_heads + 2 * self.num_kv_heads) * self.head_dim
        layer = self.hidden_size * (heads + 3 * self.intermediate_size)
        return self.num_layers * layer + (2 - self.tie_embeddings) * self.vocab_size * self.hidden_size


def shape_of(name: str, config: ModelConfig) -> list[int]:
    """The shape of a tensor by our name of it, such as ``layers.0.q_proj`` or ``layers.0.q_proj.bias``."""
    hidden, wide = config.hidden_size, config.intermediate_size
    queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    rows = {
        **dict.fromkeys(("embedding", "head"), config.vocab_size),
        **dict.fromkeys(("gate_proj", "up_proj"), wide),
        **dict.fromkeys(("k_proj", "v_proj"), keys),
        **dict.fromkeys(("q_norm", "k_norm"), config.head_dim),
        "q_proj": queries,
    }
    columns = {"o_proj": queries, "down_proj": wide}
    part = name.removesuffix(".bias").rpartition(".")[2]
    flat = "norm" in part or name.endswith(".bias")
    return [rows.get(part, hidden)] if flat else [rows.get(part, hidden), columns.get(part, hidden)]
