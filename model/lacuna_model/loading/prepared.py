"""Keeps weights in the user's cache in the form that passes read: preparing them takes far longer than reading them."""

import contextlib
import hashlib
import mmap
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
import torch
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
MADV_POPULATE_READ = 22  # linux/mman.h, since 5.14
# The types of its tensors, by the names that safetensors gives them (huggingface/safetensors, "Format").
DTYPES = {
    "I8": torch.int8,
    "U8": torch.uint8,
    "I32": torch.int32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


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


class Prepared(msgspec.Struct, frozen=True):
    """Prepared weights, in the memory that holds their file."""

    tensors: dict[str, Tensor]
    about: Preparation


class _Part(msgspec.Struct):
    """What a safetensors file says of a tensor; ``data_offsets`` are its first byte and its end behind the header."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def read_prepared(path: Path) -> Prepared | None:
    """The prepared weights at ``path``, or None if the file is missing, damaged or not trusted."""
    try:
        return _read(path) if atomic.is_trusted(path) else None
    except (OSError, KeyError, ValueError, RuntimeError, msgspec.MsgspecError, WeightsError):
        return None


def _read(path: Path) -> Prepared:
    whole = mapped(path)
    start = 8 + int.from_bytes(whole[:8].numpy().tobytes(), "little")
    said = msgspec.json.decode(whole[8:start].numpy().data, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(said.pop("__metadata__"), type=dict[str, str])
    about = msgspec.json.decode(metadata["about"], type=_Said)
    parts = {name: msgspec.json.decode(part, type=_Part) for name, part in said.items()}
    if start + max(part.data_offsets[1] for part in parts.values()) != len(whole):
        raise ValueError(f"{path} has another size than it says")
    tensors = dict[str, Tensor]()
    for name, part in parts.items():
        begin, end = part.data_offsets
        tensors[name] = whole[start + begin : start + end].view(DTYPES[part.dtype]).view(part.shape)
    check_fused(tensors, about.config)
    return Prepared(tensors, Preparation(about.config, _vocabulary(bytes(about.vocabulary))))


def write_prepared(path: Path, *, tensors: dict[str, Tensor], about: Preparation) -> None:
    """Write the prepared form; the file appears complete or not at all. Raises OSError."""
    # Those that fill whole lines of the cache come first, so that all of them begin with one.
    ordered = sorted(tensors, key=lambda name: tensors[name].nbytes % CACHE_LINE != 0)
    parts, end = dict[str, _Part](), 0
    for name in ordered:
        tensor, begin, end = tensors[name], end, end + tensors[name].nbytes
        parts[name] = _Part(NAMES[tensor.dtype], list(tensor.shape), (begin, end))
    header = msgspec.json.encode({"__metadata__": {"about": msgspec.json.encode(about).decode()}} | parts)
    header += b" " * (-(8 + len(header)) % CACHE_LINE)
    with atomic.replacing(path) as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for name in ordered:
            stream.write(tensors[name].contiguous().view(-1).view(torch.uint8).numpy().data)


def mapped(path: Path) -> Tensor:
    """The bytes [N] of a file where the system's cache of files holds them: nothing is copied. Raises OSError.

    Writing to them does not change the file.
    """
    with path.open("rb") as file:
        area = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    with contextlib.suppress(AttributeError, OSError):  # a system that cannot; there every page is a fault of its own
        area.madvise(MADV_POPULATE_READ)
    return torch.frombuffer(area, dtype=torch.uint8)
