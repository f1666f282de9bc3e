"""The canvas side's own parameters: a low-rank update of every linear, its norms and the mask embedding."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lacuna_model import atomic
from lacuna_model.assembly import State, build_transformer
from lacuna_model.config import ModelConfig
from lacuna_model.errors import WeightsError
from lacuna_model.linear import DenseLinear, LowRankLinear
from lacuna_model.transformer import Transformer


class TrainableCanvas(nn.Module):
    """The canvas side while it is trained: frozen base weights in ``dtype``, everything else learns.

    The mask embedding starts as the mean of the embeddings, the norms as the base's, the updates at zero.
    """

    def __init__(self, config: ModelConfig, fused: State, *, rank: int, dtype: torch.dtype, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        # Module names may hold no dot: the dots of tensor names are slashes here and dots again in the file.
        self.adapted = nn.ModuleDict(
            {
                name.replace(".", "/"): LowRankLinear(tensor.to(dtype), rank, generator)
                for name, tensor in fused.items()
                if tensor.ndim == 2 and name.startswith("layers.")
            }
        )
        self.norms = nn.ParameterDict(
            {name.replace(".", "/"): nn.Parameter(fused[name].clone()) for name in fused if name.endswith("norm")}
        )
        self.mask_embedding = nn.Parameter(fused["embedding"].mean(dim=0))
        norms = {name.replace("/", "."): norm for name, norm in self.norms.items()}
        frozen_head = DenseLinear(fused["head"].to(dtype))
        self.transformer: Transformer = build_transformer(
            config,
            dict(fused) | norms,
            linear=lambda name: frozen_head if name == "head" else self.adapted[name.replace(".", "/")],
        )

    def learnt(self) -> dict[str, Tensor]:
        """All learnt tensors under the names an adapter file uses."""
        return {name.replace("/", "."): tensor.detach() for name, tensor in self.named_parameters()}


def save_adapter(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write an adapter atomically: low-rank factors as 8-bit codes with one scale a row, the rest in float32.

    Raises WeightsError where it cannot be written.
    """
    packed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.startswith("adapted."):
            scale = tensor.float().abs().amax(dim=1).clamp_min(1e-12) / 127.0
            packed[name] = (tensor.float() / scale[:, None]).round().to(torch.int8).cpu()
            packed[name + ".scale"] = scale.cpu()
        else:
            packed[name] = tensor.float().cpu().contiguous()
    try:
        with atomic.replacing(path) as file:
            file.write(save(packed, metadata=dict(metadata)))
    except OSError as error:
        raise WeightsError(f"{path}: cannot write the adapter: {error.strerror}") from error


def load_adapter(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """An adapter's tensors in float32 and its metadata; raises WeightsError for a damaged file."""
    try:
        with safe_open(path, framework="pt") as file:
            packed = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} is not a readable adapter ({error}); reinstall lacuna-code") from error
    tensors = {
        name: tensor.float() * packed[name + ".scale"][:, None] if name + ".scale" in packed else tensor
        for name, tensor in packed.items()
        if not name.endswith(".scale")
    }
    return tensors, metadata


def merge_adapter(fused: State, adapter: State) -> dict[str, Tensor]:
    """The canvas side's tensors: the base's with every update added and the norms replaced. float32."""
    merged = dict(fused)
    for name in fused:
        if f"adapted.{name}.up" in adapter:
            merged[name] = fused[name] + adapter[f"adapted.{name}.up"] @ adapter[f"adapted.{name}.down"]
        elif f"norms.{name}" in adapter:
            merged[name] = adapter[f"norms.{name}"]
    return merged
