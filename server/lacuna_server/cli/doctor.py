"""``lacuna doctor``: reports what is installed, the device, what is wrong and how to repair it.

Also what reads a model here, with its device and the time of a line.
"""

import importlib
import importlib.metadata
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import typer

from lacuna_model.commands import output
from lacuna_model.commands.program import JsonOption
from lacuna_model.core.errors import LacunaError
from lacuna_model.hub import machine, models
from lacuna_server.wire import layers
from lacuna_server.wire.layers import SettingsLayer


def reading(name: str, found: Iterable[SettingsLayer]) -> tuple[str, Path | None]:
    """The device on which a model is read under the settings ``found``, and the file of libllama if that reads it.

    Raises LacunaError where libllama is needed and missing.
    """
    values = layers.effective(found)
    backend, own = values["backend"].value, models.own(name)
    if own is not None and own.is_dir():
        backend = "own"
    elif own is not None and backend == "auto":
        other = importlib.import_module("lacuna_model.loading.weights").other_kind(own)
        backend = "llama" if other else "own"
    if backend != "llama":
        return values["device"].value or ("cuda" if machine.free_on_gpu() else "cpu"), None
    library = importlib.import_module("lacuna_model.llama.library").library(values["libllama"].value)
    return ", ".join(device.name for device in library.devices()), library.path


def line_seconds(parameters: int) -> float | None:
    """The seconds that a line takes with a model of so many weights, by what was measured here; None without that."""
    measured = models.line_ms()
    return None if measured is None else measured / 1e3 * parameters / models.LARGE_WEIGHTS


def as_text(seconds: float | None) -> str:
    """The time of a line for people."""
    return "not measured" if seconds is None else f"{seconds:.2f} s a line"


# Free space needed, as a multiple of a weight file's size: to fetch and prepare it, and only to prepare it.
SPACE_NEEDED = 5.0
SPACE_PREPARED = 3.2
PAGE = 4096
REINSTALL = "pip install --force-reinstall lacuna-code"


State = Literal["ok", "warn", "fail"]


class ReportLine(msgspec.Struct, frozen=True):
    """One line of the report; ``mend`` tells how to repair it and is empty where that is not needed."""

    name: str
    state: State
    detail: str
    mend: str = ""


# What a check finds: a line of the report without its name.
Finding: TypeAlias = tuple[State, str] | tuple[State, str, str]


def run_all() -> list[ReportLine]:
    """Run all checks in the order in which they are shown; Triton's only where there is a GPU."""
    found = [checked(name) for name in CHECKS if name != "triton"]
    has_gpu = any(one.name == "device" and one.detail.startswith("cuda") for one in found)
    return [*found, checked("triton")] if has_gpu else found


def checked(name: str) -> ReportLine:
    """Run one check, which fails where a package that it needs does not load."""
    try:
        return ReportLine(name, *CHECKS[name]())
    except (ImportError, OSError, ValueError, TypeError) as error:
        if isinstance(error, OSError) and error.errno:  # of a file: a library that does not load has none
            return ReportLine(name, "fail", str(error))
        return ReportLine(name, "fail", f"it needs what does not load: {error}", REINSTALL)


def grammar() -> Finding:
    """Check that tree-sitter takes the grammar of Python."""
    parser, python = map(importlib.import_module, ("tree_sitter", "tree_sitter_python"))
    parser.Language(python.language())
    return _package("tree_sitter", "tree-sitter")


def device() -> Finding:
    """Report the device that the model runs on."""
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        return "ok", f"cuda: {torch.cuda.get_device_name(0)}"
    return "ok", f"cpu, {torch.backends.cpu.get_cpu_capability()}"


def triton() -> Finding:
    """Check that Triton compiles our kernels for the GPU."""
    failure: str = importlib.import_module("lacuna_kernels.gpu").triton_failure()
    if failure:
        mend = "pip install triton, and a C compiler such as gcc"
        return "warn", f"fills are slower without its kernels: {failure}", mend
    return "ok", f"triton {importlib.metadata.version('triton')}"


def kernels() -> Finding:
    """Check that this machine has our kernels or compiles them; without them fills take several times as long."""
    native = importlib.import_module("lacuna_kernels.native")
    if not native.supported():
        return "ok", "torch's own are used, because this CPU lacks the instructions that ours need"
    try:
        found = native.build(models.kernels_dir())
    except OSError as error:
        return "warn", f"not compiled, fills are slower: {error}", "install gcc"
    return "ok", f"compiled for {found.instructions.name}, in {found.path.parent}"


def model_files() -> Finding:
    """Check that the default model's weights are on this machine and intact."""
    chosen = layers.model(layers.read(Path()))
    try:
        path = models.weights(chosen.name)
    except LacunaError as error:
        detail, _, mend = str(error).partition("; ")
        return "fail", detail if chosen.why in detail else f"{detail} ({chosen.why})", mend
    return "ok", f"{chosen.name} ({chosen.why}): {path}, intact"


def reader() -> Finding:
    """Report what reads the default model: our own layers, or libllama; on which device, and the time of a line."""
    found = layers.read(Path())
    name = layers.model(found).name
    try:
        device, library = reading(name, found)
    except LacunaError as error:
        detail, _, mend = str(error).partition(": ")
        return "fail", detail, mend
    what = "Lacuna's own layers" if library is None else f"libllama ({library})"
    info = next((one for one in models.MODELS if one.name == name), None)
    speed = f", {as_text(line_seconds(info.parameters))}" if info is not None else ""
    return "ok", f"{what} on {device}{speed}"


def configuration() -> Finding:
    """Check the files with settings that hold in the current folder."""
    found = layers.read(Path())
    problems = layers.problems(found)
    if problems:
        return "fail", "; ".join(problems), "see server/CONFIGURATION.md"
    return "ok", ", ".join(layer.source for layer in found) or "no file with settings"


def cache() -> Finding:
    """Check that the cache folder is writable and has room for the missing files of the default model."""
    folder = models.cache_dir()
    mend = f"set {models.CACHE_VARIABLE} to a folder elsewhere"
    name = layers.model(layers.read(Path())).name
    info = next((one for one in models.MODELS if one.name == name), None)  # own files need nothing
    complete = info is None or models.location(info).is_file()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:  # permissions do not tell whether the disk can be written to
            file.write(bytes(PAGE))
            file.flush()
    except OSError as error:
        detail = f"{folder} cannot be written to ({error.strerror})"
        if complete:
            return "warn", f"{detail}, so every start takes a few seconds longer", mend
        return "fail", detail, mend
    free = shutil.disk_usage(existing).free
    detail = f"{folder}, {free / 1e9:.1f} GB free"
    needed = (SPACE_PREPARED if complete else SPACE_NEEDED) * (info.size if info is not None else 0)
    if free < needed:
        return "warn", detail, f"free {needed / 1e6:.0f} MB or {mend}"
    return "ok", detail


def _package(module: str, distribution: str = "") -> Finding:
    importlib.import_module(module)
    return "ok", f"{distribution or module} {importlib.metadata.version(distribution or module)}"


CHECKS: Mapping[str, Callable[[], Finding]] = {
    "python": lambda: ("ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    "torch": partial(_package, "torch"),
    "tokenizer": partial(_package, "tokenizers"),
    "gguf": partial(_package, "gguf"),
    "grammar": grammar,
    "device": device,
    "triton": triton,
    "kernels": kernels,
    "config": configuration,
    "model": model_files,
    "reader": reader,
    "cache": cache,
}


FAILED = 1
STYLES = {"ok": "green", "warn": "magenta", "fail": "bold red"}


def doctor(json_output: JsonOption = False) -> None:
    """Check the installation, and print one line per check; exit with 1 if a check fails."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    with Console(stderr=True).status("checking"):
        checks = run_all()
    if json_output:
        output.print_json({"checks": checks})
    else:
        for check in checks:
            line = Text.assemble((f"{check.state:<5}", STYLES[check.state]), f"{check.name:<10} {check.detail}")
            if check.mend:
                line.append(f"; {check.mend}", style="italic")
            console.print(line, soft_wrap=True)
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(FAILED)
