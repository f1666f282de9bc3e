"""Merges an update into the code it is an update of, as ``/v1/apply/completions`` is asked to.

The update is new code with lines such as ``# ... existing code ...`` for what stays. Each run of lines between such
markers is put where its known lines are: from the first line that it shares with the original to the last one, and
where new lines follow that one, over the block that it heads.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from lacuna_server.wire.protocol import ServiceError

MAX_LINES = 4000
# Of a line without blanks around it. No two of its repetitions can take the same text, so it is read once.
_MARKER = re.compile(r"(?:#|//|/\*|--|<!--|;|%)?\s*\.\.\.\s*(?:existing|rest of)", re.IGNORECASE)
# Lines that stand in both texts more than once are compared with so many lines around the place, no further.
NEAR = 200


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
        if _MARKER.match(line.strip()):
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
    found = _shared(theirs, ours)
    if not found:
        raise ServiceError("bad_request", f"the original has no line of the part that begins {run[0].strip()!r}")
    (first, _), (last, known) = found[0], found[-1]
    end = at + last + 1
    return at + first, (_block_end(old, end) if known + 1 < len(run) else end)


def _shared(theirs: Sequence[str], ours: Sequence[str]) -> list[tuple[int, int]]:
    """Where lines of both texts stand, in the order of both: pairs of places in the one and in the other.

    Lines that stand once in either are the fixed points (patience diff). In front of the first of them and behind the
    last, where it counts, the others are compared too. So the work grows with the texts, not with their product.
    """
    fixed = _in_order(_unique_pairs(theirs, ours))
    if not fixed:
        return _compared(theirs, ours, 0, 0)
    (first, ours_first), (last, ours_last) = fixed[0], fixed[-1]
    begin, ours_begin = max(first - NEAR, 0), max(ours_first - NEAR, 0)
    front = _compared(theirs[begin:first], ours[ours_begin:ours_first], begin, ours_begin)
    return [*front, *fixed, *_compared(theirs[last + 1 :], ours[ours_last + 1 :], last + 1, ours_last + 1)]


def _unique_pairs(theirs: Sequence[str], ours: Sequence[str]) -> list[tuple[int, int]]:
    """The places of lines that stand once in either text, in the order of ours."""
    once = {line for line, count in Counter(theirs).items() if count == 1 and line}
    places = {line: index for index, line in enumerate(theirs) if line in once}
    counts = Counter(ours)
    return [(places[line], index) for index, line in enumerate(ours) if counts[line] == 1 and line in places]


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs whose first numbers rise (Fredman 1975)."""
    ends: list[int] = []
    chains: list[list[int]] = []
    before: list[int] = []
    for index, (place, _) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(chains[length - 1][-1] if length else -1)
        if length == len(ends):
            ends.append(place)
            chains.append([index])
        else:
            ends[length] = place
            chains[length].append(index)
    found: list[tuple[int, int]] = []
    at = chains[-1][-1] if chains else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _compared(theirs: Sequence[str], ours: Sequence[str], at: int, ours_at: int) -> list[tuple[int, int]]:
    """The places of the lines near their beginnings that both have, blank ones beside others."""
    matcher = SequenceMatcher(None, theirs[:NEAR], ours[:NEAR], autojunk=False)
    return [
        (at + block.a + offset, ours_at + block.b + offset)
        for block in matcher.get_matching_blocks()
        if any(ours[block.b : block.b + block.size])
        for offset in range(block.size)
    ]


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
