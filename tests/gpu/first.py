"""The run on a GPU that is lent for minutes: everything that they can show, in one command.

    python -m tests.gpu.first [--pretend] [--seconds 330] [--out FOLDER] [--only STEP ...]

Its steps go in the order of their worth: a default start, real weights, training; then the parts. A loan of 15 minutes
is for the first three (``--only default real training``), which take some 60 s, 200 s and what is left. It writes
``first.json`` into ``$OUT`` after every step, and prints a short table last. ``--pretend`` runs the same on a CPU with
tiny shapes and interpreted kernels.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# Read when triton and torch are first imported.
PRETEND = "--pretend" in sys.argv
if PRETEND:
    os.environ["TRITON_INTERPRET"] = "1"

from tests.gpu import (  # noqa: E402
    default_step,
    engine_steps,
    kernel_steps,
    mask_step,
    model_steps,
    real,
    train,
)
from tests.gpu.harness import SECONDS, Place, Report, Step, run_here, run_step  # noqa: E402

ROOT = Path(__file__).parents[2]
# The most that training takes, and what of it goes into loading, choosing a batch and measuring.
TRAINING_S, AROUND_TRAINING_S = 400.0, 60.0
# Kernels that read and write at computed addresses.
CHECKED = ("product", "heads", "attend", "gate")
TESTS = (
    *(f"tests/kernels/test_gpu_{name}.py" for name in (*CHECKED, "rms_norm", "rotary", "unmask", "choice")),
    "tests/model/network/test_gpu_layers.py",
)
ELSEWHERE = ("tests/model/test_elsewhere.py",)


def elsewhere(place: Place, report: Report) -> None:
    """The tests of whole requests on a second device."""
    options = ["-q", "-x", "-k", "copied_from"] if place.pretend else ["-q", "-n", "8", "--dist", "worksteal"]
    _pytest(place, report, [sys.executable, "-m", "pytest"], ELSEWHERE, options)


def tests(place: Place, report: Report) -> None:
    """The tests of the kernels and of the layers on a GPU."""
    chosen = TESTS[3:4] if place.pretend else TESTS
    options = ["-q", "-x"] if place.pretend else ["-q", "-n", "8", "--dist", "worksteal"]
    _pytest(place, report, [sys.executable, "-m", "pytest"], chosen, options)


def sanitizer(place: Place, report: Report) -> None:
    """The kernels' tests under compute-sanitizer's memcheck."""
    checked = [f"tests/kernels/test_gpu_{name}.py" for name in CHECKED]
    command = [sys.executable, "-m", "pytest"]
    if not place.pretend:
        command = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9", *command]
    _pytest(place, report, command, checked[3:] if place.pretend else checked, ["-q", "-x"])


def _pytest(
    place: Place, report: Report, command: list[str], files: tuple[str, ...] | list[str], options: list[str]
) -> None:
    # The machine lacks plugins that the project's options name.
    plain = ["-o", "filterwarnings=default", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider"]
    began = time.monotonic()
    done = subprocess.run([*command, *options, *plain, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    (place.out / f"{Path(files[0]).stem}-{Path(command[0]).name}.log").write_text(text)
    lines = [line for line in text.splitlines() if line.strip()]
    report.add("code", done.returncode, "0")
    report.add("summary", lines[-1] if lines else "nothing", "all pass")
    report.add("failed", [line[:200] for line in lines if line.startswith(("FAILED", "ERROR"))][:40])
    report.add("seconds", time.monotonic() - began)
    if done.returncode:
        report.add("end", lines[-60:])


def training(place: Place, report: Report) -> None:
    """Train mask rows on the pack that was carried there, with marks at thirds; tiny, where it is pretended.

    Expected: all that is left of a loan, up to 400 s.
    """
    seconds = train_seconds()
    words = ["--pretend"] if place.pretend else ["--seconds", str(seconds), "--out", str(place.out)]
    report.add("code", train.main(words), "0")


def train_seconds() -> float:
    """The seconds to train: of the step's time, what loading and measuring leave."""
    return float(os.environ.get(SECONDS, TRAINING_S)) - AROUND_TRAINING_S


# In the order of their worth.
STEPS = (
    Step("default", default_step.default, 120),
    Step("real", real.real, 200),
    Step("training", training, TRAINING_S),
    Step("machine", kernel_steps.machine, 30),
    Step("bits", model_steps.bits, 40),
    Step("elsewhere", elsewhere, 90),
    Step("engine 1.5B", engine_steps.rounds("1.5B"), 60),
    Step("masks", mask_step.masks, 60),
    Step("engine 7B", engine_steps.rounds("7B"), 60),
    Step("engine 7B 8 bit", engine_steps.rounds("7B", eight_bit=True), 60),
    Step("products", kernel_steps.products, 40),
    Step("1.5B", model_steps.shape("1.5B"), 60),
    Step("engine 0.5B", engine_steps.rounds("0.5B"), 40),
    Step("kernels", kernel_steps.kernels, 70),
    Step("tests", tests, 90),
    Step("sanitizer", sanitizer, 60),
)


def pretending() -> None:
    """Let the tensors of a CPU count as those of a GPU, with keys in the order that they have there."""
    from lacuna_kernels import gpu

    gpu.reads = lambda *tensors: True  # type: ignore[assignment]
    sys.modules["lacuna_kernels.operations"]._multiplies = lambda device, dtype: False  # type: ignore[attr-defined]


def main() -> int:
    """Run the steps within the time; returns how many did not end well."""
    parser = argparse.ArgumentParser(description="The first run on a GPU.")
    parser.add_argument("--pretend", action="store_true", help="tiny shapes on a CPU")
    parser.add_argument("--seconds", type=float, default=330.0, help="for all steps together")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "/tmp/lacuna-gpu")))
    parser.add_argument("--only", nargs="*", default=[], choices=[step.name for step in STEPS])
    parser.add_argument("--step", choices=[step.name for step in STEPS], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.pretend:
        pretending()
    place, began, found = Place(chosen.pretend, chosen.out), time.monotonic(), dict[str, Any]()
    if chosen.step:
        return run_here(next(step for step in STEPS if step.name == chosen.step), place)
    for step in STEPS:
        if chosen.only and step.name not in chosen.only:
            continue
        left = chosen.seconds - (time.monotonic() - began)
        if left < 5:
            found[step.name] = {"ended": "no time left", "seconds": 0.0, "found": {}}
        else:
            print(f"== {step.name} (at {time.monotonic() - began:.0f} s)", flush=True)
            found[step.name] = run_step(step, place, left if place.pretend else min(step.seconds, left))
        (chosen.out / "first.json").write_text(json.dumps(found, indent=1))
    print("\nstep             ended                seconds")
    for name, step_found in found.items():
        print(f"{name:16} {step_found['ended']:20} {step_found['seconds']:7.1f}")
    return sum(step_found["ended"] != "ok" for step_found in found.values())


if __name__ == "__main__":
    raise SystemExit(main())
