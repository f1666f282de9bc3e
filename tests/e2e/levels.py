"""The memory of processes over time, and whether it is level.

What counts is what a process has for itself: pages of files, such as the weights, are the system's to take back.
"""

import contextlib
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# A process fills its caches in the first minutes of its life.
SETTLED_MIN = 10.0
# So many minutes are judged at least, by their first and their last third.
LEAST_MIN = 6.0
# Between the middles of these thirds memory may grow by so many MB, or by this part of it: one more thread, or a
# document that is larger than those before. What grows by so much in each such time goes on, and is found by a
# longer run.
GROWTH_MB, GROWTH = 4.0, 0.04


@dataclass(frozen=True, slots=True)
class Level:
    """What a process had at the beginning and at the end of the time that is judged, in MB; None: it is too short."""

    first: float
    last: float
    minutes: float

    @property
    def is_level(self) -> bool:
        """Whether it grew by less than the tolerance."""
        return self.last - self.first <= max(GROWTH_MB, GROWTH * self.first)

    def __str__(self) -> str:
        said = "level" if self.is_level else "NOT LEVEL"
        return f"{said}: {self.first:.0f} MB, {self.minutes:.0f} minutes later {self.last:.0f} MB"


class Levels:
    """The memory of each process, by its name and id, as it was noted."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, int], list[tuple[float, float]]] = {}

    def note(self, minute: float, sizes: Mapping[tuple[str, int], float]) -> None:
        """Note what each process has (MB) in a minute."""
        for process, size in sizes.items():
            self._noted.setdefault(process, []).append((minute, size))

    def at(self, minute: float) -> dict[str, float]:
        """What each process had at a minute or shortly before, in MB."""
        found = {}
        for (name, pid), noted in self._noted.items():
            before = [size for when, size in noted if minute - 1 <= when <= minute]
            if before:
                found[f"{name} {pid}"] = before[-1]
        return found

    def judged(self) -> dict[str, Level | None]:
        """The level of each process; None for one that did not live for long enough."""
        return {f"{name} {pid}": level(noted) for (name, pid), noted in self._noted.items()}


def level(noted: list[tuple[float, float]]) -> Level | None:
    """The level of a process by the memory (MB) at some minutes, its first one that of its start."""
    settled = [one for one in noted if one[0] >= noted[0][0] + SETTLED_MIN]
    if not settled or settled[-1][0] - settled[0][0] < LEAST_MIN:
        return None
    third = max(len(settled) // 3, 1)
    first, last = settled[:third], settled[-third:]
    middles = [statistics.median(minute for minute, _ in part) for part in (first, last)]
    sizes = [statistics.median(size for _, size in part) for part in (first, last)]
    return Level(*sizes, middles[1] - middles[0])


def own_megabytes(pids: Mapping[int, str]) -> dict[tuple[str, int], float]:
    """What each process has for itself, by its name and id."""
    found = {}
    for pid, name in pids.items():
        with contextlib.suppress(OSError, ValueError):
            status = Path(f"/proc/{pid}/status").read_text()
            found[name, pid] = int(status.split("RssAnon:")[1].split()[0]) * 1024 / 1e6
    return found
