"""Keeps weights in the user's cache in the form that passes read: preparing them takes far longer than reading them."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from lacuna_model.core.errors import WeightsError
from lacuna_model.hub import models, ownership
from lacuna_model.network import memory
from lacuna_model.network.assembly import check_fused
from lacuna_model.network.config import ModelConfig
from lacuna_model.tokens.tokenizer import Vocabulary

# Prepared files that are kept, since several models and precisions are used in turn.
PREPARED_KEPT = 4
# Increase when the format of the prepared files changes.
PREPARED_VERSION = "7"
# Threads that read a prepared file.
READERS = 2
# The types of its tensors, by the names that safetensors gives them (huggingface/safetensors, "Format").
DTYPES = {
    "I8": torch.int8,
    "U8": torch.uint8,
    "I32": torch.int32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
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


class Prepared:
    """Prepared weights, which threads read from their file: ``tensors`` have their bytes once :meth:`wait` returns."""

    def __init__(self, path: Path) -> None:
        """Begins to read. Raises OSError, KeyError, ValueError or WeightsError if the file is damaged."""
        with path.open("rb") as file:
            header = file.read(int.from_bytes(file.read(8), "little"))
            start, size = file.tell(), os.fstat(file.fileno()).st_size
        said = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        metadata = msgspec.json.decode(said.pop("__metadata__"), type=dict[str, str])
        self.about = msgspec.json.decode(metadata["about"], type=Preparation)
        places = {name: msgspec.json.decode(part, type=_Part) for name, part in said.items()}
        if start + max(part.data_offsets[1] for part in places.values()) != size:
            raise ValueError(f"{path} has another size than it says")
        room = memory.room({name: part.bytes for name, part in places.items()})
        self.tensors = {name: room[name].view(DTYPES[part.dtype]).view(part.shape) for name, part in places.items()}
        check_fused(self.tensors, self.about.config)
        self._threads = ThreadPoolExecutor(READERS, "weights")
        self._reading = [
            self._threads.submit(memory.fill, room[name], path, start + part.data_offsets[0])
            for name, part in places.items()
        ]

    def wait(self) -> dict[str, Tensor]:
        """The tensors, with their bytes. Raises WeightsError if the file cannot be read."""
        with self._threads:
            try:
                for part in self._reading:
                    part.result()
            except OSError as error:
                raise WeightsError(f"prepared weights cannot be read: {error}") from error
        return self.tensors


class _Part(msgspec.Struct):
    """What a safetensors file says of a tensor; ``data_offsets`` are its first byte and its end behind the header."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]

    @property
    def bytes(self) -> int:
        return self.data_offsets[1] - self.data_offsets[0]


def read_prepared(path: Path) -> Prepared | None:
    """The prepared weights at ``path``, or None if the file is missing, damaged or not trusted."""
    try:
        return Prepared(path) if ownership.is_trusted(path) else None
    except (OSError, KeyError, ValueError, RuntimeError, msgspec.MsgspecError, WeightsError):
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
