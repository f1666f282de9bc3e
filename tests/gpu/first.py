"""The run on a GPU that is lent for minutes: everything that they can show, in one command.

    python -m tests.gpu.first [--pretend] [--seconds 330] [--out FOLDER] [--only STEP ...]

Its steps go in the order of their worth: a default start, real weights, training; then the tests. A loan of 15 minutes
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read when triton and torch are first imported.
PRETEND = "--pretend" in sys.argv
if PRETEND:
    os.environ["TRITON_INTERPRET"] = "1"

from tests.gpu import default_step, real, train  # noqa: E402
from tests.gpu.harness import SECONDS, Place, Report, Step, run_here, run_step  # noqa: E402

ROOT = Path(__file__).parents[2]
# The most that training takes, and what of it goes into loading and measuring.
TRAINING_S, AROUND_TRAINING_S = 400.0, 60.0
PARTS = ("product", "heads", "attend", "elementwise", "unmask", "choice")
TESTS = (
    *(f"tests/kernels/test_gpu_{name}.py" for name in PARTS),
    "tests/model/network/test_gpu_layers.py",
    "tests/model/test_elsewhere.py",
)


def tests(place: Place, report: Report) -> None:
    """The tests of the kernels, of the layers and of whole requests on a GPU."""
    options = ["-x"] if place.pretend else ["-n", "8", "--dist", "worksteal"]
    _pytest(place, report, [], TESTS[3:4] if place.pretend else TESTS, options)


def sanitizer(place: Place, report: Report) -> None:
    """The tests of kernels that read and write at computed addresses under compute-sanitizer's memcheck."""
    command = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9"]
    _pytest(place, report, [] if place.pretend else command, TESTS[3:4] if place.pretend else TESTS[:4], ["-x"])


def _pytest(place: Place, report: Report, under: Sequence[str], files: Sequence[str], options: Sequence[str]) -> None:
    # The machine lacks plugins that the project's options name.
    plain = ["-o", "filterwarnings=default", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider"]
    command = [*under, sys.executable, "-m", "pytest", "-q", *options, *plain, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    (place.out / f"{Path(command[0]).name}.log").write_text(text)
    report.add("code", done.returncode, "0")
    report.add("end", [line for line in text.splitlines() if line.strip()][-60 if done.returncode else -1 :])


def training(place: Place, report: Report) -> None:
    """Train mask rows on the pack that was carried there, with marks at thirds; tiny, where it is pretended.

    Expected: all that is left of a loan, up to 400 s.
    """
    seconds = float(os.environ.get(SECONDS, TRAINING_S)) - AROUND_TRAINING_S
    words = ["--pretend"] if place.pretend else ["--seconds", str(seconds), "--out", str(place.out)]
    report.add("code", train.main(words), "0")


# In the order of their worth.
STEPS = (
    Step("default", default_step.default, 120),
    Step("real", real.real, 200),
    Step("training", training, TRAINING_S),
    Step("tests", tests, 180),
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
