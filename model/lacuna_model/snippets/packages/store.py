"""The names of modules in the user's cache, by package, version and module; a damaged entry is ignored."""

import hashlib
import os
from pathlib import Path

import msgspec

from lacuna_model.hub import atomic, models
from lacuna_model.hub.keeping import prune
from lacuna_model.snippets.packages.environment import Module
from lacuna_model.snippets.packages.module_names import ModuleNames

# Increase when what a reader finds changes.
VERSION = 1
SUFFIX = ".names"
MAX_KEPT = 200
MAX_SECONDS = 60 * 24 * 3600


def load(module: Module, mark: tuple[int, int]) -> ModuleNames | None:
    """The names of a module whose file has this size and modification time (ns); None where they are not kept."""
    file = _location(module, mark)
    try:
        if not atomic.is_trusted(file):
            return None
        data = file.read_bytes()
        os.utime(file)  # marks it as used
        return msgspec.msgpack.decode(data, type=ModuleNames)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


def save(module: Module, mark: tuple[int, int], names: ModuleNames) -> None:
    """Keep the names of a module, readable by the user only, since a package may be private. Raises OSError."""
    file = _location(module, mark)
    atomic.make_private(file.parent)
    with atomic.replacing(file, private=True) as stream:
        stream.write(msgspec.msgpack.encode(names))
    prune(file, most=MAX_KEPT, most_seconds=MAX_SECONDS)


def _location(module: Module, mark: tuple[int, int]) -> Path:
    """A version is the same wherever it is installed; without one the file's time tells."""
    parts = (VERSION, module.package, module.version or mark[1], module.shown, mark[0])
    digest = hashlib.sha256("\0".join(map(str, parts)).encode(errors="surrogateescape")).hexdigest()
    return models.cache_dir() / "names" / f"{digest[:32]}{SUFFIX}"
