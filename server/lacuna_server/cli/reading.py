"""What reads a model here: our own layers or libllama, on which device, and how fast that was measured to be."""

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lacuna_model.hub import gpus, models
from lacuna_server.wire import layers
from lacuna_server.wire.layers import SettingsLayer


class ReaderInfo(NamedTuple):
    """The ``reader`` of a model (``own``, ``libllama``), its ``device``, and the ``library`` of libllama."""

    reader: str
    device: str
    library: Path | None = None


def reading(name: str, found: Iterable[SettingsLayer]) -> ReaderInfo:
    """What reads a model under the settings ``found``; raises LacunaError where libllama is needed and missing."""
    values = layers.effective(found)
    backend, file = values["backend"].value, models.file(name)
    other = file is not None and importlib.import_module("lacuna_model.loading.weights").other_kind(file)
    if models.folder(name) or backend == "own" or not (other or backend == "llama"):
        return ReaderInfo("own", values["device"].value or ("cuda" if gpus.free_memory() else "cpu"))
    library = importlib.import_module("lacuna_model.llama.library").library(values["libllama"].value)
    return ReaderInfo("libllama", ", ".join(device.name for device in library.devices()), library.path)


def line_seconds(parameters: int) -> float | None:
    """The seconds that a line takes with a model of so many weights, by what was measured here; None without that."""
    measured = models.line_ms()
    return None if measured is None else measured / 1e3 * parameters / models.LARGE_WEIGHTS


def as_text(seconds: float | None) -> str:
    """The time of a line for people."""
    return "not measured" if seconds is None else f"{seconds:.2f} s a line"
