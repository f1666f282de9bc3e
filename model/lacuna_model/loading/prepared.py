"""Keeps weights in the user's cache in the form that passes read: preparing them takes far longer than reading them."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from lacuna_model.core.errors import WeightsError
from lacuna_model.hub import atomic, models
from lacuna_model.network.assembly import check_fused
from lacuna_model.network.config import ModelConfig
from lacuna_model.tokenizer import Vocabulary

# Prepared files that are kept, since several models and precisions are used in turn: so many, and more where all are
# small, so that the forms of small models do not remove those of large ones, which take longer to make.
PREPARED_KEPT = 4
PREPARED_BYTES = 4 * 1024**3
# Increase when the format of the prepared files changes.
PREPARED_VERSION = "8"
CACHE_LINE = 64  # bytes
# The types of tensors by the names that safetensors gives them (huggingface/safetensors, "Format").
DTYPES = {
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.int32: "I32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
}


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


class _Said(msgspec.Struct):
    """A :class:`Preparation` as a file has it, its vocabulary unread."""

    config: ModelConfig
    vocabulary: msgspec.Raw


@lru_cache(maxsize=1)
def _vocabulary(said: bytes) -> Vocabulary:
    """A vocabulary, read once for a model and for that which drafts for it."""
    return msgspec.json.decode(said, type=Vocabulary)


def read_prepared(path: Path) -> tuple[dict[str, Tensor], Preparation] | None:
    """The prepared weights at ``path``, in the memory that holds it; None if it is missing, damaged or not trusted."""
    try:
        if not atomic.is_trusted(path):
            return None
        with safe_open(path, framework="pt") as file:  # tensors are mapped, and outlive it
            about = msgspec.json.decode(file.metadata()["about"], type=_Said)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        check_fused(tensors, about.config)
        return tensors, Preparation(about.config, _vocabulary(bytes(about.vocabulary)))
    except (OSError, KeyError, TypeError, SafetensorError, msgspec.MsgspecError, WeightsError):
        return None


def write_prepared(stream: BinaryIO, *, tensors: dict[str, Tensor], about: Preparation) -> None:
    """Write the prepared form. Raises OSError."""
    # Those that fill whole lines of the cache come first, so that all of them begin with one.
    ordered = sorted(tensors, key=lambda name: tensors[name].nbytes % CACHE_LINE != 0)
    header: dict[str, Any] = {"__metadata__": {"about": msgspec.json.encode(about).decode()}}
    end = 0
    for name in ordered:
        tensor, begin, end = tensors[name], end, end + tensors[name].nbytes
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": (begin, end)}
    said = msgspec.json.encode(header)
    said += b" " * (-(8 + len(said)) % CACHE_LINE)
    stream.write(len(said).to_bytes(8, "little") + said)
    for name in ordered:
        stream.write(tensors[name].contiguous().view(-1).view(torch.uint8).numpy().data)
