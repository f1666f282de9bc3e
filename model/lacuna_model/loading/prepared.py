"""Keeps weights in the user's cache in the form that passes read: preparing them takes far longer than reading them."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lacuna_model.core.errors import WeightsError
from lacuna_model.hub import models, ownership
from lacuna_model.network.assembly import check_fused
from lacuna_model.network.config import ModelConfig
from lacuna_model.tokens.tokenizer import Vocabulary

# Prepared files that are kept, since several models and precisions are used in turn.
PREPARED_KEPT = 4
# Increase when the format of the prepared files changes.
PREPARED_VERSION = "7"


class Preparation(msgspec.Struct, frozen=True):
    """The metadata of a prepared file: the model's config and vocabulary."""

    config: ModelConfig
    vocabulary: Vocabulary


def prepared_path(files: Sequence[Path], precision: str) -> Path:
    """The path of the prepared form of these files, by their paths, sizes and modification times."""
    digest = hashlib.sha256(f"{PREPARED_VERSION} {torch.__version__} {precision}".encode())
    for file in files:
        status = file.stat()
        digest.update(f"{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode())
    return models.cache_dir() / "prepared" / f"{digest.hexdigest()[:24]}.safetensors"


def read_prepared(path: Path) -> tuple[dict[str, Tensor], Preparation] | None:
    """The tensors and metadata at ``path``, or None where the file is missing, damaged or not trusted."""
    try:
        if not ownership.is_trusted(path):
            return None
        with safe_open(path, framework="pt") as file:
            about = msgspec.json.decode((file.metadata() or {})["about"], type=Preparation)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        check_fused(tensors, about.config)
        return tensors, about
    except (OSError, SafetensorError, KeyError, msgspec.MsgspecError, WeightsError):
        return None


def write_prepared(path: Path, *, tensors: dict[str, Tensor], about: Preparation) -> None:
    """Write the prepared form; the file appears complete or not at all. Raises OSError."""
    temporary = path.with_suffix(f".{os.getpid()}.part")
    unique = {name: tensor.contiguous() for name, tensor in tensors.items()}
    if unique["head"] is unique.get("embedding"):
        unique["head"] = unique["head"].clone()
    try:
        save_file(unique, temporary, metadata={"about": msgspec.json.encode(about).decode()})
        temporary.replace(path)
    except SafetensorError as error:  # a full disk
        raise OSError(str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)
