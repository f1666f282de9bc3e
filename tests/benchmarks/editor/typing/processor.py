"""The processor time of programs and of what they have started."""

import os
from collections.abc import Iterable
from pathlib import Path

PROCESSES = Path("/proc")


def seconds(pids: Iterable[int]) -> float:
    """The processor seconds of these processes and all that descend from them, ended ones included.

    Elsewhere than on Linux it is 0.
    """
    found = {pid: stat for pid in _all() if (stat := _stat(pid)) is not None}
    chosen, left = set[int](), set(pids)
    while left:
        chosen |= left
        left = {pid for pid, (parent, _) in found.items() if parent in left} - chosen
    return sum(found[pid][1] for pid in chosen if pid in found) / os.sysconf("SC_CLK_TCK")


def _all() -> list[int]:
    return [int(one.name) for one in PROCESSES.glob("[0-9]*")]


def _stat(pid: int) -> tuple[int, int] | None:
    """A process's parent, and the ticks that it and its ended children have used; None where it has ended."""
    try:
        fields = (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), sum(map(int, fields[11:15]))
