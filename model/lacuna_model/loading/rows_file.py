"""The file of a model's trained rows of one kind: what a row that holds a mask reads, what rows add to every linear.

A model that drafts reads its last token and, behind it, a mask for each further slot; one pass denoises all of them
(parallel drafting, as PARD does, arXiv 2504.18583). Only rows of the kind get the additions, ``y += high(low(x))``:
those of masks, or of tokens behind the header of an edit, or of a fill.
"""

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import msgspec
import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from lacuna_kernels.native import WIDTH
from lacuna_model.core.errors import WeightsError
from lacuna_model.hub import atomic
from lacuna_model.network.assembly import FUSED, check_shapes, fused_shape, linear_from
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.devices import HOST
from lacuna_model.network.linear import EDIT, INFILL, MASKS, Pair, quantize_rows
from lacuna_model.network.transformer import Transformer

# The kinds of rows that the engine asks for.
KINDS = (MASKS, EDIT, INFILL)


class RowsConfig(msgspec.Struct, frozen=True):
    """The sizes of rows of a ``kind``; ``slots`` counts the token that the real row predicts.

    There are ``slots - 1`` masks: none where the rows are those of tokens.
    """

    hidden_size: int
    layers: int
    slots: int
    rank: int
    kind: str = MASKS


def shipped(name: str, kind: str = MASKS) -> Path | None:
    """The file of rows of a kind that ships for a model of the registry, or None."""
    path = Path(str(resources.files("lacuna_model.loading"))) / "rows" / f"{name}.{kind}.safetensors"
    return path if os.sep not in name and path.is_file() else None  # else it is a folder's name


def with_shipped(name: str, base: Transformer, *, drafts: bool) -> Transformer:
    """The ``base`` with all rows that ship for a model, those of masks alone if it only ``drafts`` for another one.

    Raises WeightsError as :func:`stored` does.
    """
    for path in filter(None, (shipped(name, kind) for kind in ((MASKS,) if drafts else KINDS))):
        base = read(path, base)
    return base


def additions(model: ModelConfig, rank: int) -> dict[str, tuple[int, int]]:
    """The name and shape [out, in] of every linear of the additions: ``low`` and ``high`` of each of a model's own."""
    found = {}
    for index in range(model.num_layers):
        for name in FUSED:
            outputs, inputs = fused_shape(name, model)
            found[f"layers.{index}.{name}.low"] = (rank, inputs)
            found[f"layers.{index}.{name}.high"] = (outputs, rank)
    return found


def write(path: Path, config: RowsConfig, tensors: Mapping[str, Tensor]) -> None:
    """Writes ``masks`` [slots - 1, H], if any, and the :func:`additions`, each in 8 bit, a scale for every output.

    Raises OSError.
    """
    kept = {name: tensors[name].to(HOST).half() for name in tensors.keys() & {"masks"}}
    for name in tensors.keys() - {"masks"}:
        codes, scale = quantize_rows(tensors[name].to(HOST).float())
        kept |= {name: codes, name + ".scale": scale.half()}
    with atomic.replacing(path) as stream:
        stream.write(save(kept, metadata={"config": msgspec.json.encode(config).decode()}))


def stored(path: Path, model: ModelConfig) -> tuple[RowsConfig, dict[str, Tensor]]:
    """The config and the tensors in a file for a ``model``: int8 codes by name, with scales, and ``masks`` in float16.

    Raises WeightsError where the file is damaged, or for another model.
    """
    try:
        with safe_open(path, framework="pt") as file:
            config = msgspec.json.decode((file.metadata() or {})["config"], type=RowsConfig)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError, KeyError, msgspec.MsgspecError) as error:
        raise WeightsError(f"{path}: the rows cannot be read: {error}") from error
    if (config.hidden_size, config.layers) != (model.hidden_size, model.num_layers):
        raise WeightsError(f"{path} has the rows of another model")
    if config.slots < (2 if config.kind == MASKS else 1) or config.rank < 1:
        raise WeightsError(f"{path}: rows of {config.slots} slots and rank {config.rank}")
    linears = additions(model, config.rank)
    masks = {"masks": (config.slots - 1, config.hidden_size)} if config.slots > 1 else {}
    shapes: dict[str, tuple[int, ...]] = {**masks, **linears}
    shapes |= {name + ".scale": (outputs,) for name, (outputs, _) in linears.items()}
    check_shapes(path, tensors, shapes)
    if wrong := [name for name in linears if tensors[name].dtype is not torch.int8]:
        raise WeightsError(f"{path}: the tensor {wrong[0]} has {tensors[wrong[0]].dtype}, not {torch.int8}")
    return config, tensors


def read(path: Path, base: Transformer) -> Transformer:
    """The ``base`` with the rows at a path; raises WeightsError as :func:`stored` does."""
    config, tensors = stored(path, base.config)
    if base.is_native and (more := -config.rank % WIDTH):  # the kernels compute in widths
        tensors = {name: _wider(name, tensor, more) for name, tensor in tensors.items()}
    device = base.final_norm.device
    tensors = {name: (tensor.float() if "scale" in name else tensor).to(device) for name, tensor in tensors.items()}

    def pair(name: str) -> Pair:
        return Pair(*(linear_from(tensors, f"{name}.{part}", base.kernels) for part in ("low", "high")))

    layers = [{name: pair(f"layers.{index}.{name}") for name in FUSED} for index in range(config.layers)]
    return base.with_additions(config.kind, layers, tensors["masks"].float() if config.kind == MASKS else None)


def _wider(name: str, tensor: Tensor, more: int) -> Tensor:
    """A tensor of additions whose rank is ``more``, with zeros: outputs of ``low``, inputs of ``high``."""
    if name.endswith((".low", ".low.scale")):
        return F.pad(tensor, (*[0] * (2 * tensor.ndim - 1), more))
    return F.pad(tensor, (0, more)) if name.endswith(".high") else tensor


def dense(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of :func:`stored` in float32, without scales."""
    found = {name: tensors[name].float() for name in tensors.keys() & {"masks"}}
    for name in tensors.keys() - {"masks"}:
        if not name.endswith(".scale"):
            found[name] = tensors[name].float() * tensors[name + ".scale"].float()[:, None]
    return found
