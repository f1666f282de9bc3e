"""How long the large model takes for the first line of a fill on this machine, which decides the default model.

The figure is measured when a model is prepared or first used, kept in the cache folder, and put right by fills. What
other programs take of the processor meanwhile says nothing of the machine: it is taken off, and a fill that is slow
beside them changes nothing.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lacuna_model.hub.atomic import keep, replacing
from lacuna_model.hub.models import LARGE_WEIGHTS, line_ms, num_cores, speed_file

# Fills tell of a speed that was measured wrong where they take so many times as long, or as short.
WRONG = 1.6
# The machine is measured so many times; of a time, at least such a share is the model's own.
ROUNDS, LEAST_SHARE = 4, 0.2
PROCESSOR_TIMES = Path("/proc/stat")
# The fields of a line of it: user, nice, system, idle, iowait, irq, softirq, steal.
IDLE_FIELDS = (3, 4)


def undisturbed(measure: Callable[[], float]) -> float:
    """Return what the best of some measurements (ms) would be on an idle machine."""
    return min(_measured(measure) for _ in range(ROUNDS))


def _measured(measure: Callable[[], float]) -> float:
    began, own, used = time.monotonic(), time.process_time(), _processor_seconds()
    ms = measure()
    cores = num_cores() * max(time.monotonic() - began, 1e-9)
    others = max(_processor_seconds() - used - (time.process_time() - own), 0.0) / cores
    return ms * max(1 - others, LEAST_SHARE)


def _processor_seconds() -> float:
    """The seconds that all programs have used of the cores that are this process's; 0 where the system tells none."""
    if not hasattr(os, "sched_getaffinity"):
        return 0.0
    try:
        lines = [line.split() for line in PROCESSOR_TIMES.read_text(encoding="ascii").splitlines()]
    except OSError:
        return 0.0
    own = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    times = [list(map(int, line[1:9])) for line in lines if line and line[0] in own]
    ticks = sum(sum(one) - sum(one[field] for field in IDLE_FIELDS) for one in times)
    return ticks / os.sysconf("SC_CLK_TCK")


def is_busy() -> bool:
    """Whether more programs have wanted to run in the last minute than this machine has cores."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > num_cores() + 0.5


def learn(ms: float, num_weights: int) -> None:
    """Keep what a model of so many weights took for a line; its passes cost as much more as it has more weights."""
    file = speed_file()
    keep(file, file.name, lambda path: _write(path, ms * LARGE_WEIGHTS / num_weights))


def correct(ms: float, num_weights: int) -> None:
    """Keep what a line took where that says that the known speed is wrong, or where none is known.

    On a busy machine it can only say that the model is faster than was known.
    """
    known, found = line_ms(), ms * LARGE_WEIGHTS / num_weights
    slow = not is_busy() and (known is None or found > known * WRONG)
    if slow or (known is not None and found < known / WRONG):
        learn(ms, num_weights)


def _write(path: Path, ms: float) -> None:
    with replacing(path) as stream:
        stream.write(msgspec.json.encode({"line_ms": round(ms, 1)}))
