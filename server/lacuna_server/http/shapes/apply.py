"""Merges an update into its original code, for ``/v1/apply/completions``.

The update is new code in which markers such as ``# ... existing code ...`` replace unchanged parts. Each run of lines
between markers replaces the lines of the original from the first line that both share to the last one. If new lines
follow the last shared line, the run also replaces the indented block after it.
"""

import re
from collections.abc import Sequence

from lacuna_model.text import diff
from lacuna_model.text.lines import indentation
from lacuna_server.wire.protocol import ServiceError

MAX_LINES = 4000
# Matches a stripped line. No two repetitions in it can match the same text, so matching takes linear time.
_MARKER = re.compile(r"(?:#|//|/\*|--|<!--|;|%)?\s*\.\.\.\s*(?:existing|rest of)", re.IGNORECASE)
# Repeated lines are compared only within so many lines of the place.
NEAR = 200


def merge(original: str, update: str) -> str:
    """Return ``original`` with the update merged in; an update without a marker is the whole new code.

    Raises ServiceError ``bad_request`` where a part of the update has no line in common with the original, and
    ``too_large`` where one of them has more than ``MAX_LINES`` lines.
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
    """Return the runs of lines between the markers."""
    runs: list[list[str]] = [[]]
    for line in lines:
        if _MARKER.match(line.strip()):
            runs.append([])
        else:
            runs[-1].append(line)
    return runs


def _without_blank_edges(run: Sequence[str]) -> Sequence[str]:
    """Return a run without the blank lines next to its markers, because the original has its own."""
    lines = [index for index, line in enumerate(run) if line.strip()]
    return run[lines[0] : lines[-1] + 1] if lines else ()


def _place(old: Sequence[str], run: Sequence[str], at: int) -> tuple[int, int]:
    """Return the range of lines of the original, from line ``at`` on, that the run replaces."""
    theirs, ours = [line.rstrip() for line in old[at:]], [line.rstrip() for line in run]
    found = _shared(theirs, ours)
    if not found:
        raise ServiceError("bad_request", f"the original has no line of the part that begins {run[0].strip()!r}")
    (first, _), (last, known) = found[0], found[-1]
    end = at + last + 1
    return at + first, (_block_end(old, end) if known + 1 < len(run) else end)


def _shared(theirs: Sequence[str], ours: Sequence[str]) -> list[tuple[int, int]]:
    """Return the lines that both texts share, in the order of both, as pairs of line numbers (theirs, ours).

    Lines that occur once in each text are the fixed points (patience diff). Other lines are compared only before the
    first fixed point and after the last one. So the work is linear in the length of the texts.
    """
    alone = [pair for pair in diff.once(ours, theirs) if ours[pair[0]]]
    fixed = [(place, index) for index, place in diff.in_order(alone)]
    if not fixed:
        return _compared(theirs, ours, 0, 0)
    (first, ours_first), (last, ours_last) = fixed[0], fixed[-1]
    begin, ours_begin = max(first - NEAR, 0), max(ours_first - NEAR, 0)
    front = _compared(theirs[begin:first], ours[ours_begin:ours_first], begin, ours_begin)
    return [*front, *fixed, *_compared(theirs[last + 1 :], ours[ours_last + 1 :], last + 1, ours_last + 1)]


def _compared(theirs: Sequence[str], ours: Sequence[str], at: int, ours_at: int) -> list[tuple[int, int]]:
    """Return the shared lines among the first ``NEAR`` of both; blank lines count only next to others."""
    return [
        (at + hunk.start + offset, ours_at + hunk.new_start + offset)
        for kind, hunk in diff.blocks(theirs[:NEAR], ours[:NEAR])
        if kind == "equal" and any(ours[hunk.new_start : hunk.new_end])
        for offset in range(hunk.end - hunk.start)
    ]


def _block_end(old: Sequence[str], end: int) -> int:
    """Return the end of the block after line ``end - 1``: of the lines that are indented further than that line."""
    depth = len(indentation(old[end - 1]))
    for index in range(end, len(old)):
        if old[index].strip():
            if len(indentation(old[index])) <= depth:
                break
            end = index + 1
    return end
