"""Merges an update into the code it is an update of, as ``/v1/apply/completions`` is asked to.

The update is new code with lines such as ``# ... existing code ...`` for what stays. Each run of lines between such
markers is put where its known lines are: from the first line that it shares with the original to the last one, and
where new lines follow that one, over the block that it heads.
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from lacuna_server.protocol import ServiceError

MAX_LINES = 4000
_MARKER = re.compile(r"\s*(?:#|//|/\*|--|<!--|;|%)?\s*\.\.\.\s*(?:existing|rest of)[^\n]*", re.IGNORECASE)


def merge(original: str, update: str) -> str:
    """``original`` with the update in its place; an update without a marker is all of the new code.

    Raises ServiceError: ``bad_request`` where a part of the update has no line in common with the original,
    ``too_large`` where one of them is too long to be compared in reasonable time.
    """
    old, runs = original.split("\n"), _runs(update.removesuffix("\n").split("\n"))
    if len(runs) == 1:
        return update
    if len(old) > MAX_LINES or sum(map(len, runs)) > MAX_LINES:
        raise ServiceError("too_large", f"an update is merged into {MAX_LINES} lines at most")
    merged: list[str] = []
    at = 0
    for run in filter(None, map(_without_blank_edges, runs)):
        start, end = _place(old, run, at)
        merged += [*old[at:start], *run]
        at = end
    return "\n".join([*merged, *old[at:]])


def _runs(lines: Sequence[str]) -> list[list[str]]:
    """The lines between the markers."""
    runs: list[list[str]] = [[]]
    for line in lines:
        if _MARKER.fullmatch(line):
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


def _without_blank_edges(run: Sequence[str]) -> Sequence[str]:
    """A run without the blank lines beside its markers: the original has its own."""
    lines = [index for index, line in enumerate(run) if line.strip()]
    return run[lines[0] : lines[-1] + 1] if lines else ()


def _place(old: Sequence[str], run: Sequence[str], at: int) -> tuple[int, int]:
    """Which lines of the original, none before ``at``, the run takes the place of."""
    theirs, ours = [line.rstrip() for line in old[at:]], [line.rstrip() for line in run]
    matcher = SequenceMatcher(None, theirs, ours, autojunk=False)
    found = [block for block in matcher.get_matching_blocks() if any(ours[block.b : block.b + block.size])]
    if not found:
        raise ServiceError("bad_request", f"the original has no line of the part that begins {run[0].strip()!r}")
    end = at + found[-1].a + found[-1].size
    news = found[-1].b + found[-1].size < len(run)
    return at + found[0].a, (_block_end(old, end) if news else end)


def _block_end(old: Sequence[str], end: int) -> int:
    """Behind the lines that are indented further than the one before ``end``."""
    depth = _indent(old[end - 1])
    for index in range(end, len(old)):
        if old[index].strip():
            if _indent(old[index]) <= depth:
                break
            end = index + 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
