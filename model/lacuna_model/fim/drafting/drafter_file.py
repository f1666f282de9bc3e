"""The file of a model's drafter: its weights in 8 bit, and the tokens of its vocabulary."""

from collections.abc import Mapping
from functools import partial
from importlib import resources
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from lacuna_kernels.checks import WIDTH
from lacuna_kernels.native import NativeKernels
from lacuna_model.core.errors import WeightsError
from lacuna_model.hub import atomic
from lacuna_model.network.devices import HOST
from lacuna_model.network.drafter import Drafter, DrafterConfig, assembled, linears
from lacuna_model.network.linear import NativeLinear, from_codes, quantize_rows
from lacuna_model.network.transformer import Transformer

# Unit vectors of one call, where a head's rows are read by its outputs.
UNITS = 64
# Rows of a head that are quantised together.
PIECE = 256


def shipped(name: str) -> Path | None:
    """The file that ships for a model of the registry, or None."""
    path = Path(str(resources.files("lacuna_model.fim.drafting"))) / "drafters" / f"{name}.safetensors"
    return path if path.is_file() else None


def write(path: Path, config: DrafterConfig, tensors: Mapping[str, Tensor]) -> None:
    """Writes trained weights, each linear with 8 bit and a scale for every output. Raises OSError."""
    tensors = {name: tensor.to(HOST) for name, tensor in tensors.items()}
    kept = {"norm": tensors["norm"].half(), "vocabulary": tensors["vocabulary"].int()}
    for name in linears(config):
        codes, scale = quantize_rows(tensors[name].float())
        kept |= {name: codes, name + ".scale": scale.half()}
    with atomic.replacing(path) as stream:
        stream.write(save(kept, metadata={"config": msgspec.json.encode(config).decode()}))


def stored(path: Path, hidden_size: int) -> tuple[DrafterConfig, dict[str, Tensor]]:
    """The config and the tensors in a file, linears as codes with scales.

    Raises WeightsError where the file is damaged, or for a model whose hidden states have another size.
    """
    try:
        with safe_open(path, framework="pt") as file:
            config = msgspec.json.decode((file.metadata() or {})["config"], type=DrafterConfig)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError, KeyError, msgspec.MsgspecError) as error:
        raise WeightsError(f"{path}: the drafter cannot be read: {error}") from error
    if config.hidden_size != hidden_size:
        raise WeightsError(f"{path} is the drafter of another model")
    wanted = {"norm", "vocabulary", *linears(config), *(name + ".scale" for name in linears(config))}
    if missing := wanted - tensors.keys():
        raise WeightsError(f"{path}: the drafter cannot be read: it has no {min(missing)}")
    shapes = linears(config) | {name + ".scale": (out,) for name, (out, _) in linears(config).items()}
    for name, shape in ({"norm": (hidden_size,), "vocabulary": (len(tensors["vocabulary"]),)} | shapes).items():
        if tuple(tensors[name].shape) != shape:
            raise WeightsError(f"{path}: the drafter's {name} has shape {list(tensors[name].shape)}, not {list(shape)}")
    return config, tensors


def read(path: Path, base: Transformer, kernels: NativeKernels | None) -> Drafter:
    """The drafter at a path for a ``base``; raises WeightsError as :func:`stored` does."""
    config, tensors = stored(path, base.config.hidden_size)
    device = base.final_norm.device
    tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    made = {name: from_codes(tensors[name], tensors[name + ".scale"].float(), kernels) for name in linears(config)}
    vocabulary, norm = _in_head(tensors["vocabulary"].long(), base), tensors["norm"].float()
    codes, scale = _head_codes(base, vocabulary)
    return assembled(config, made, norm, partial(embedded, base), from_codes(codes, scale, kernels), vocabulary)


def _in_head(vocabulary: Tensor, base: Transformer) -> Tensor:
    """The tokens that the base's head has, which may be cut; a number of them that the kernels support."""
    known = vocabulary[vocabulary < base.outputs]
    return known if len(known) == len(vocabulary) else known[: len(known) // WIDTH * WIDTH]


def embedded(base: Transformer, tokens: Tensor) -> Tensor:
    """The base's embeddings [N, H] of ``tokens`` [N]."""
    return base.embed(tokens[None])[0]


def _head_codes(base: Transformer, vocabulary: Tensor) -> tuple[Tensor, Tensor]:
    """Codes [W, H] and scales [W] of :func:`head_rows`, made in pieces that stay in the processor's cache."""
    if not isinstance(base.head, NativeLinear):
        return quantize_rows(head_rows(base, vocabulary))
    pieces = torch.split(vocabulary, PIECE)
    codes, scales = zip(*(quantize_rows(head_rows(base, piece)) for piece in pieces), strict=True)
    return torch.cat(codes), torch.cat(scales)


def head_rows(base: Transformer, vocabulary: Tensor) -> Tensor:
    """The rows [W, H] of the base's head for the tokens of a vocabulary, in float32."""
    head = base.head
    if isinstance(head, NativeLinear):
        return head.lookup(vocabulary)
    # Another form gives its rows only as outputs: those of the unit vectors are its columns.
    units = torch.eye(base.config.hidden_size, device=base.final_norm.device)
    return torch.cat([head(part)[:, vocabulary] for part in torch.split(units, UNITS)]).T.float()
