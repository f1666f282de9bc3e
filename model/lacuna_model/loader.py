"""Loads a model: base weights, adapter and tokenizer, in the precision the device is fast in.

The first load of a GGUF works out what every later one needs (dequantised, adapted, quantised anew) and keeps it in
the user's cache, so that later ones only read it.
"""

import hashlib
import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lacuna_kernels import attention_dtype, native
from lacuna_model import denoise, memory, models, ownership
from lacuna_model.adapter import load_adapter, merge_adapter
from lacuna_model.assembly import State, build_transformer, fuse, narrow, quantize
from lacuna_model.checkpoint import Checkpoint
from lacuna_model.config import ModelConfig
from lacuna_model.devices import choose_device
from lacuna_model.keeping import keep
from lacuna_model.prefixes import PrefixTable
from lacuna_model.smoothing import measure, smooth
from lacuna_model.tokenizer import Tokenizer, Vocabulary
from lacuna_model.transformer import Transformer
from lacuna_model.weights import GgufFile

# Prepared forms that stay: several models and precisions are used in turn.
PREPARED_KEPT = 4
# Raised when what is kept in the cache changes its meaning.
PREPARED_VERSION = "6"
# What 8-bit linears have to read is measured on so many tokens of our own source, which is always at hand.
CALIBRATION_TOKENS = 512


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Both sides of a model, ready to run."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    base: Transformer
    canvas: Transformer
    mask_embedding: Tensor
    prefixes: PrefixTable
    cache_dtype: torch.dtype = torch.float32


class Preparation(msgspec.Struct, frozen=True):
    """What a prepared file says of itself beside its tensors."""

    config: ModelConfig
    vocabulary: Vocabulary


def load_model(
    name: str, *, threads: int = 0, path: Path | None = None, precision: str = "", device: str = ""
) -> LoadedModel:
    """Load ``name`` from the cache, or the GGUF at ``path``.

    ``threads`` 0 leaves the choice to :func:`choose_threads`, ``device`` "" to :func:`choose_device`. ``precision`` ""
    takes bfloat16 on a GPU, 8 bit on a CPU that has the instructions, by our own kernels or torch's, and float32
    elsewhere. Raises DeviceError, ModelNotFoundError or WeightsError.
    """
    place = choose_device(device)
    threads = threads or choose_threads()
    torch.set_num_threads(threads)
    info = models.find(name)
    weights = path or models.path(info)
    adapter = models.adapter_path(info)
    own = place.type == "cpu" and precision in ("", "int8")
    kernels = native.load(models.kernels_dir(), threads) if own else None
    precision = precision or ("int8" if kernels else default_precision(place))
    found, about = _read_or_prepare(weights, adapter, precision)
    memory.reuse_freed()
    tensors = {name: tensor.to(place) for name, tensor in found.items()}
    shared = ("embedding", "head", "head.scale")
    base_side = {n.removeprefix("base."): t for n, t in tensors.items() if not n.startswith("canvas.")}
    canvas_side = {n.removeprefix("canvas."): t for n, t in tensors.items() if n.startswith("canvas.") or n in shared}
    base = build_transformer(about.config, base_side, kernels=kernels)
    canvas = build_transformer(about.config, canvas_side, kernels=kernels)
    canvas.head = base.head
    if base.is_native and canvas.is_native:
        torch.set_num_threads(1)  # what is left to torch is short, and would only wait for its threads
    tokenizer = Tokenizer(about.vocabulary)
    return LoadedModel(
        name,
        about.config,
        tokenizer,
        base,
        canvas,
        tensors["mask_embedding"],
        PrefixTable(tokenizer, place),
        cache_dtype=torch.bfloat16 if kernels else cache_dtype(precision, place),
    )


def load_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a model alone: of the registry, of a GGUF file, or of the checkpoint in a folder."""
    folder = models.folder(name)
    if folder is not None:
        return Checkpoint(folder).tokenizer()
    return Tokenizer(GgufFile(models.weights(name)).vocabulary())


def _read_or_prepare(weights: Path, adapter: Path, precision: str) -> tuple[dict[str, Tensor], Preparation]:
    """The prepared form, read from its file even where that was just made: what making it took is given back."""
    path = prepared_path([weights, adapter], precision)
    found = read_prepared(path)
    if found is None:
        tensors, about = _prepare(weights, adapter, precision)
        keep(path, "*.safetensors", partial(write_prepared, tensors=tensors, about=about), most=PREPARED_KEPT)
        found = read_prepared(path) or (tensors, about)
        del tensors
        memory.give_back_freed()  # 1.3 GB
    return found


def _prepare(weights: Path, adapter_file: Path, precision: str) -> tuple[dict[str, Tensor], Preparation]:
    """Both sides' tensors, those they share once, in the wanted precision."""
    file = GgufFile(weights)
    adapter, _ = load_adapter(adapter_file)
    base = fuse(file.state(), file.config())
    sides: list[State] = [base, merge_adapter(base, adapter)]
    if precision == "int8":
        ids = Tokenizer(file.vocabulary()).encode(inspect.getsource(denoise))[:CALIBRATION_TOKENS]
        peaks = measure(base, file.config(), ids)
        sides = [quantize(smooth(side, file.config(), peaks)) for side in sides]
    elif precision == "bfloat16":
        sides = [narrow(side) for side in sides]
    shared = ("embedding", "head")
    tensors = {name if name.startswith(shared) else f"base.{name}": tensor for name, tensor in sides[0].items()}
    tensors |= {f"canvas.{name}": tensor for name, tensor in sides[1].items() if not name.startswith(shared)}
    tensors["mask_embedding"] = adapter["mask_embedding"]
    return tensors, Preparation(file.config(), file.vocabulary())


def prepared_path(files: Sequence[Path], precision: str) -> Path:
    """Where the prepared form of these very files is kept."""
    digest = hashlib.sha256(f"{PREPARED_VERSION} {torch.__version__} {precision}".encode())
    for file in files:
        status = file.stat()
        digest.update(f"{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode())
    return models.cache_dir() / "prepared" / f"{digest.hexdigest()[:24]}.safetensors"


def read_prepared(path: Path) -> tuple[dict[str, Tensor], Preparation] | None:
    """What is kept at ``path``, or None where there is nothing whole: it is only a cache and is made anew."""
    try:
        if not ownership.is_trusted(path):
            return None
        with safe_open(path, framework="pt") as file:
            about = msgspec.json.decode((file.metadata() or {})["about"], type=Preparation)
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError, KeyError, msgspec.MsgspecError):
        return None


def write_prepared(path: Path, *, tensors: dict[str, Tensor], about: Preparation) -> None:
    """Write the prepared form, which appears whole or not at all. Raises OSError."""
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


def default_precision(device: torch.device) -> str:
    """``bfloat16`` on a GPU, ``int8`` on CPUs where torch's own 8-bit products are fast (AVX2 and up), or float32."""
    if device.type == "cuda":
        return "bfloat16"
    return "int8" if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512") else "float32"


def cache_dtype(precision: str, device: torch.device) -> torch.dtype:
    """What keys and values are kept in: float32 beside such weights, else bfloat16 where the device is fast in it."""
    return torch.float32 if precision == "float32" else attention_dtype(device)


def choose_threads() -> int:
    """Threads for a forward pass: the cores this process may use, at most eight; a small model gains nothing beyond."""
    return max(1, min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
