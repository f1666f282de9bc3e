"""Tiny random mask rows for the tiny random models."""

from dataclasses import replace
from pathlib import Path

import torch
from tests.model.fim import tiny_fim
from torch import Tensor

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.loading import rows_file
from lacuna_model.loading.rows_file import RowsConfig
from lacuna_model.network.assembly import FUSED
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import MASKS, DenseLinear, LayerAdditions, Pair

SLOTS = 5
Additions = tuple[LayerAdditions, Tensor]


def tensors(model: ModelConfig, rank: int = 4, seed: int = 0, slots: int = SLOTS) -> dict[str, Tensor]:
    """Random tensors of the file's names, large enough that the additions show."""
    drawn = torch.Generator().manual_seed(seed)
    shapes = {"masks": (slots - 1, model.hidden_size), **rows_file.additions(model, rank)}
    return {name: torch.randn(shape, generator=drawn) * shape[1] ** -0.5 for name, shape in shapes.items()}


def rows(model: ModelConfig, rank: int = 4, seed: int = 0, device: torch.device | str = "cpu") -> Additions:
    """The same as additions and inputs of mask rows in float32."""
    return of(model, {name: tensor.to(device) for name, tensor in tensors(model, rank, seed).items()})


def of(model: ModelConfig, found: dict[str, Tensor]) -> Additions:
    """Additions and inputs of tensors in float32."""

    def pair(name: str) -> Pair:
        return Pair(DenseLinear(found[name + ".low"]), DenseLinear(found[name + ".high"]))

    layers = [{name: pair(f"layers.{index}.{name}") for name in FUSED} for index in range(model.num_layers)]
    return layers, found["masks"]


def write(path: Path, model: ModelConfig, rank: int = 4, seed: int = 0, slots: int = SLOTS, kind: str = MASKS) -> Path:
    """A file of them; rows of tokens, of another kind, have no masks."""
    found = tensors(model, rank, seed, slots)
    if kind != MASKS:
        slots = 1
        del found["masks"]
    rows_file.write(path, RowsConfig(model.hidden_size, model.num_layers, slots, rank, kind), found)
    return path


def masked(model: LoadedFim, seed: int = 0) -> LoadedFim:
    """A model with random mask rows."""
    return replace(model, transformer=model.layers.with_additions(MASKS, *rows(tiny_fim.CONFIG, seed=seed)))
