"""The shape that a config gives every tensor of a model. Every loader checks its tensors against it."""

from collections.abc import Mapping, Sequence

from lacuna_model.core.errors import WeightsError
from lacuna_model.network.config import ModelConfig


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


def check_shapes(
    where: object, config: ModelConfig, names: Mapping[str, str], shapes: Mapping[str, Sequence[int]]
) -> None:
    """Compare a file's tensors with its config: ``names`` are the file's names by ours, ``shapes`` are by the file's.

    Raises WeightsError, which names ``where``, for the first tensor of another shape.
    """
    for ours, theirs in names.items():
        found, expected = list(shapes[theirs]), shape_of(ours, config)
        if found != expected:
            raise WeightsError(f"{where}: the tensor {theirs} has shape {found}, expected {expected}")
