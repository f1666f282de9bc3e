"""Runs the steps of a GPU check, each in a process of its own, and times work on the device.

A step that fails, hangs or breaks the device's context loses nothing of the others: what it has reported is kept.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

# The variable that tells a step how many seconds it has.
SECONDS = "LACUNA_STEP_SECONDS"


class Report:
    """What a step has measured, written to its file at every entry."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found: dict[str, Any] = {}

    def add(self, name: str, value: object, predicted: str = "") -> None:
        """Keep and print a value; ``predicted`` is what it was expected to be."""
        self.found[name] = {"measured": value, "predicted": predicted} if predicted else value
        self._path.write_text(json.dumps(self.found))
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"  {name}: {shown}" + (f"   (predicted {predicted})" if predicted else ""), flush=True)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the steps run: a CUDA device, or a CPU that pretends to be one."""

    pretend: bool
    out: Path

    @property
    def device(self) -> torch.device:
        return torch.device("cpu" if self.pretend else "cuda")


@dataclass(frozen=True, slots=True)
class Step:
    """A check: its name, what it does, and the seconds that it may take."""

    name: str
    run: Callable[[Place, Report], None]
    seconds: float


def run_step(step: Step, place: Place, seconds: float) -> dict[str, Any]:
    """Run a step in a process of its own for at most ``seconds``; what it reported, and how it ended.

    The process is a new one, and no fork: libraries that this one has imported may have begun to use the device.
    """
    path = place.out / f".{step.name}.json"
    path.write_text("{}")
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.gpu.first", "--out", str(place.out), "--step", step.name]
    given = os.environ | {SECONDS: str(seconds)}
    with subprocess.Popen([*command, *["--pretend"] * place.pretend], env=given, start_new_session=True) as child:
        try:
            code = child.wait(seconds)
            ended = "ok" if not code else f"failed ({code})"
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            ended = "out of time"
    found: dict[str, Any] = {"ended": ended, "seconds": round(time.monotonic() - began, 1)}
    try:
        found["found"] = json.loads(path.read_text())
    except json.JSONDecodeError:
        found["found"] = {}
    path.unlink()
    return found


def run_here(step: Step, place: Place) -> int:
    """Run the step in this process; returns its exit code. A failure is the last entry of its report."""
    report = Report(place.out / f".{step.name}.json")
    try:
        step.run(place, report)
    except BaseException:
        report.add("error", traceback.format_exc())
        return 1
    return 0
