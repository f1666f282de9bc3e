"""Finds and binds libllama, the C API of llama.cpp (``include/llama.h``), without a compiler.

The PyPI package ``xllamacpp`` carries the library inside of its extension module, which exports the C API. The API
passes structs by value and changes them without a notice, so the binding is of one version: :data:`PACKAGE`. Whether
a library has the same structs is checked against the defaults that it gives out. The library ends the process for some
files that it refuses, so each is opened in a process of its own first (:func:`rehearse`).
"""

import ctypes
import logging
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from lacuna_model.core.errors import WeightsError

log = logging.getLogger(__name__)

PACKAGE = "xllamacpp==2026.10.11549"
# Names a library of the same version, as one compiled for a GPU.
VARIABLE = "LACUNA_LIBLLAMA"
# Levels of the library's messages.
_WARNING, _ERROR = 3, 4
# More than the structs have: the rest is not looked at, since they are passed in memory.
_PARAMS_BYTES = 256


class Params(ctypes.Structure):
    """The settings of a model or a context, as bytes with the fields at known places."""

    _fields_ = (("data", ctypes.c_ubyte * _PARAMS_BYTES),)

    def read(self, place: int, kind: str) -> float:
        """The field at a place; ``kind`` is a format of :mod:`struct`."""
        found: float = struct.unpack_from(kind, self.data, place)[0]
        return found

    def put(self, place: int, kind: str, value: float) -> None:
        """Set the field at a place."""
        struct.pack_into(kind, self.data, place, value)


class Batch(ctypes.Structure):
    """The rows of a pass: tokens, positions, the sequences of each, and which of them have logits."""

    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


# Places and kinds of the fields that are set.
GPU_LAYERS = (16, "<i")
CHECK_TENSORS = (73, "<?")
CELLS, BATCH, SEQUENCES = (0, "<I"), (4, "<I"), (12, "<I")
THREADS, BATCH_THREADS = (28, "<i"), (32, "<i")
WHOLE_WINDOW, UNIFIED = (140, "<?"), (141, "<?")
# What the structs of this version hold at some places, at first.
_MODEL_DEFAULTS = {GPU_LAYERS: -1, (20, "<i"): 1, (24, "<i"): -1, (28, "<i"): 1, CHECK_TENSORS: 0, (74, "<?"): 1}
_CONTEXT_DEFAULTS = {
    CELLS: 512, BATCH: 2048, (8, "<I"): 512, SEQUENCES: 1, THREADS: 4, BATCH_THREADS: 4, (52, "<i"): -1,
    (64, "<f"): -1.0, (104, "<i"): 1, (108, "<i"): 1, (136, "<?"): 0, (139, "<?"): 1, WHOLE_WINDOW: 1, UNIFIED: 0,
}  # fmt: skip

_P, _I, _U, _B, _S = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_bool, ctypes.c_char_p
# The functions that are called: results and arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "backend_init": (None,),
    "log_set": (None, _P, _P),
    **dict.fromkeys(("model_default_params", "context_default_params"), (Params,)),
    "model_load_from_file": (_P, _S, Params),
    "init_from_model": (_P, _P, Params),
    **dict.fromkeys(("model_free", "free"), (None, _P)),
    **dict.fromkeys(("model_get_vocab", "get_memory"), (_P, _P)),
    **dict.fromkeys(("n_ctx", "n_seq_max"), (_U, _P)),
    **dict.fromkeys(
        ("model_n_ctx_train", "model_n_layer", "model_n_embd", "model_n_head", "model_n_head_kv"), (_I, _P)
    ),
    "model_n_params": (ctypes.c_uint64, _P),
    **dict.fromkeys(("model_is_recurrent", "model_is_hybrid", "model_is_diffusion", "model_has_encoder"), (_B, _P)),
    "vocab_n_tokens": (_I, _P),
    "vocab_get_attr": (_I, _P, _I),
    "token_to_piece": (_I, _P, _I, ctypes.c_char_p, _I, _I, _B),
    "tokenize": (_I, _P, _S, _I, ctypes.POINTER(_I), _I, _B, _B),
    "decode": (_I, _P, Batch),
    "get_logits_ith": (ctypes.POINTER(ctypes.c_float), _P, _I),
    "memory_can_shift": (_B, _P),
    "memory_seq_rm": (_B, _P, _I, _I, _I),
    "memory_seq_cp": (None, _P, _I, _I, _I, _I),
    "memory_seq_add": (None, _P, _I, _I, _I, _I),
    "ggml_backend_dev_count": (ctypes.c_size_t,),
    "ggml_backend_dev_get": (_P, ctypes.c_size_t),
    "ggml_backend_dev_name": (_S, _P),
    "ggml_backend_dev_type": (_I, _P),
    "ggml_backend_dev_memory": (None, _P, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)),
}
# Kinds of devices that are GPUs: of their own memory, and of the machine's.
_GPUS = (1, 2)
_Log = ctypes.CFUNCTYPE(None, _I, _S, _P)


@dataclass(frozen=True, slots=True)
class Device:
    """A device that the library computes on, with its free memory in bytes."""

    name: str
    is_gpu: bool
    free: int


class Library:
    """The functions of libllama by their names without ``llama_``; ``first_error`` is what it told first of a fault.

    Raises WeightsError where the file is no such library, or one whose structs differ.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.first_error = ""
        self._calls: dict[str, Callable[..., Any]] = {}
        try:
            loaded = ctypes.CDLL(str(path))
            for name, (result, *arguments) in _FUNCTIONS.items():
                function = getattr(loaded, name if name.startswith("ggml_") else f"llama_{name}")
                function.restype, function.argtypes = result, arguments
                self._calls[name] = function
        except (OSError, AttributeError) as error:
            raise WeightsError(f"{path} is no libllama that can be used ({error}); install {PACKAGE}") from error
        for name, expected in (("model", _MODEL_DEFAULTS), ("context", _CONTEXT_DEFAULTS)):
            given = self(f"{name}_default_params")
            if any(given.read(*place) != value for place, value in expected.items()):
                raise WeightsError(f"{path} is another version of libllama than this reader knows; install {PACKAGE}")
        self._heard = _Log(self._hear)  # kept, because the library calls it
        self("log_set", self._heard, None)
        self("backend_init")

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Call a function."""
        return self._calls[name](*arguments)

    def devices(self) -> list[Device]:
        """The devices of this machine that the library was built for."""
        found = []
        for index in range(self("ggml_backend_dev_count")):
            device = self("ggml_backend_dev_get", index)
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            self("ggml_backend_dev_memory", device, ctypes.byref(free), ctypes.byref(total))
            name = self("ggml_backend_dev_name", device).decode()
            found.append(Device(name, self("ggml_backend_dev_type", device) in _GPUS, free.value))
        return found

    @property
    def complaint(self) -> str:
        """What the library said of the last fault, in one line."""
        return self.first_error or "it does not say why"

    def _hear(self, level: int, text: bytes, _: object) -> None:
        line = text.decode("utf-8", errors="replace").strip()
        if level >= _WARNING and line:
            log.debug("libllama: %s", line)
        if level == _ERROR and line and not self.first_error:  # the first says why, others what follows
            self.first_error = " ".join(line.split())


def found(named: str = "") -> Path | None:
    """The library's file: the ``named`` one, that of :data:`VARIABLE`, or that of :data:`PACKAGE`; None without any."""
    if named := named or os.environ.get(VARIABLE, ""):
        return Path(named).expanduser()
    spec = util.find_spec("xllamacpp")  # it is not imported
    folders = spec.submodule_search_locations if spec is not None else None
    files = [file for folder in folders or () for file in sorted(Path(folder).glob("xllamacpp*")) if file.is_file()]
    return next((file for file in files if file.suffix in (".so", ".pyd", ".dylib")), None)


@cache
def library(named: str = "") -> Library:
    """The library, loaded once for all models: the ``named`` one, as :func:`found` says.

    Raises WeightsError where there is none that fits.
    """
    if (path := found(named)) is None:
        raise WeightsError("this model needs libllama, which is not installed: pip install 'lacuna-code[llama]'")
    return Library(path)


# How long a file may take to be opened in a process of its own, in seconds.
REHEARSAL_S = 300.0


def rehearse(path: Path, library_path: Path) -> None:
    """Raise WeightsError for a file with which the library ends its process, or does not come to an end.

    ``python -m lacuna_model.llama.library FILE`` is that process. It reads sizes and vocabulary, maps the weights
    without reading them, and plans the passes of a short context.
    """
    command = [sys.executable, "-I", "-m", __name__, str(path)]
    quiet = {**os.environ, "GGML_NO_BACKTRACE": "1", VARIABLE: str(library_path)}
    try:
        done = subprocess.run(command, env=quiet, capture_output=True, timeout=REHEARSAL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise WeightsError(f"libllama does not come to an end with {path}") from error
    if done.returncode not in (0, 1):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it does not say why"]
        raise WeightsError(f"libllama breaks down at {path} ({said[0]})")


def main(path: str) -> None:
    """Open the file; whatever is refused in order is refused again, with a reason, where the model is loaded."""
    opened = library()
    params = opened("model_default_params")
    params.put(*GPU_LAYERS, 0)
    if model := opened("model_load_from_file", path.encode(), params):
        of_context = opened("context_default_params")
        for field, value in ((CELLS, 64), (BATCH, 64), (THREADS, 1), (BATCH_THREADS, 1)):
            of_context.put(*field, value)
        opened("init_from_model", model, of_context)


if __name__ == "__main__":
    main(sys.argv[1])
