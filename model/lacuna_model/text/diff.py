"""What two texts have in common, and where they differ."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from typing import Literal

Kind = Literal["equal", "replace", "delete", "insert"]
# So many tokens that are the same again end a difference.
REJOINED = 8


@dataclass(frozen=True, slots=True)
class Hunk:
    """The items ``start``..``end`` of an old sequence became the items ``new_start``..``new_end`` of a new one."""

    start: int
    end: int
    new_start: int
    new_end: int

    def moved(self, by: int, new_by: int) -> "Hunk":
        """The same hunk of sequences that have so many more items before it."""
        return Hunk(self.start + by, self.end + by, self.new_start + new_by, self.new_end + new_by)


def blocks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[Kind, Hunk]]:
    """Two sequences in blocks, in order: what is the same, and what differs."""
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(kind, Hunk(*place)) for kind, *place in found]


def hunks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Hunk]:
    """The places in which two sequences differ."""
    return [hunk for kind, hunk in blocks(old, new) if kind != "equal"]


def pairs(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The indices of the items that both sequences have, in the order of both."""
    same = (hunk for kind, hunk in blocks(old, new) if kind == "equal")
    return [(hunk.start + index, hunk.new_start + index) for hunk in same for index in range(hunk.end - hunk.start)]


def once(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The indices of the items that occur once in each sequence, in the order of the old one."""
    counts, new_counts = Counter(old), Counter(new)
    places = {item: index for index, item in enumerate(new) if new_counts[item] == 1}
    return [(index, places[item]) for index, item in enumerate(old) if counts[item] == 1 and item in places]


def in_order(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A longest subsequence of pairs whose second numbers increase (Fredman 1975)."""
    # ``ends`` has the index of the last pair of the best subsequence of each length, ``lasts`` its second number.
    ends, lasts, before = list[int](), list[int](), list[int]()
    for index, (_, second) in enumerate(found):
        length = bisect_left(lasts, second)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1], lasts[length : length + 1] = [index], [second]
    chosen, index = list[tuple[int, int]](), ends[-1] if ends else -1
    while index >= 0:
        chosen.append(found[index])
        index = before[index]
    return chosen[::-1]


def num_common(one: Sequence[object], other: Sequence[object]) -> int:
    """How many bytes, characters or items two sequences begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def num_common_end(one: Sequence[object], other: Sequence[object]) -> int:
    """How many bytes, characters or items two sequences end with in common."""
    return num_common(one[::-1], other[::-1])


def common_ends(one: Sequence[object], other: Sequence[object]) -> tuple[int, int]:
    """How many items two sequences begin with in common, and how many behind these they end with in common."""
    first = num_common(one, other)
    return first, num_common_end(one[first:], other[first:])


def rejoined(old: Sequence[int], new: Sequence[int]) -> int | None:
    """The place in ``old`` behind the tokens that ``new`` ends with, where both are the same again behind a difference.

    So many as ``REJOINED`` tokens have to be the same. None where they are not.
    """
    first, end = num_common(old, new), list(new[-REJOINED:])
    if len(new) < first + REJOINED:
        return None
    places = range(first + REJOINED, len(old) + 1)
    return next((place for place in places if list(old[place - REJOINED : place]) == end), None)


def unified(old: str, new: str, name: str, new_name: str = "", *, context: int = 3) -> str:
    """A unified diff of two texts, with so many lines of context; "" where they are the same."""
    texts = old.splitlines(), new.splitlines()
    return "\n".join(unified_diff(*texts, name, new_name or name, n=context, lineterm=""))
