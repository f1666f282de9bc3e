"""Cuts a file down to what decides how one of its places is read.

That is the nodes around the place and what stands near it. So a long list of nodes, such as statements or elements,
keeps its ends and what is beside the place. What is asked of each place then costs as much in a long file as in a short
one.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from tree_sitter import Node, Tree

from lacuna_model.languages.parsing import UnparsableError
from lacuna_server.refactor.places.matching import Span
from lacuna_server.refactor.places.source import Source

# Nodes of so many bytes and children stay whole.
SHORT, FEW = 400, 14
# Of a longer list stay so many children at its beginning and at its end, ...
HEAD, TAIL = 5, 4
# ... so many beside a place, and in groups of so many, because the places of a group share an excerpt.
BESIDE, GROUP = 3, 6
# Where one list goes on after a cut, it does so behind the same separator, which is at most so many children away.
REACH = 6

Range: TypeAlias = tuple[int, int]


class Excerpts:
    """The excerpts of one file. Raises UnparsableError where the file cannot be parsed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._root = source.tree.root_node
        self._cuts: tuple[Span, ...] = ()
        self._excerpt = source
        self._known: dict[int, tuple[Span, ...]] = {}

    def around(self, start: int, end: int) -> tuple[Source, int]:
        """Returns the excerpt for the bytes ``start``..``end``, and how many bytes before them are not in it.

        It is the file itself where it is short, or where the place would be read otherwise in an excerpt.
        """
        cuts = tuple(sorted(self._all_cuts(start, end)))
        if not cuts or any(first < end and start < last for first, last in cuts):
            return self._source, 0
        if cuts != self._cuts:
            self._cuts, self._excerpt = cuts, self._without(cuts)
        moved = sum(last - first for first, last in cuts if last <= start)
        try:
            same = self._is_read_alike(self._excerpt.tree, start, end, moved)
        except UnparsableError:
            same = False
        return (self._excerpt, moved) if same else (self._source, 0)

    def _all_cuts(self, start: int, end: int) -> Iterator[Span]:
        """Yields what is cut out of the nodes around a place, and out of those beside it."""
        node: Node | None = self._root
        while node is not None and not _is_short(node):
            children = node.children
            first = bisect_right(children, start, key=lambda child: child.end_byte)
            last = max(bisect_left(children, end, key=lambda child: child.start_byte), first)
            node = None
            kept = _kept(children, (first, last))
            yield from _between(children, kept)
            for index in (index for one in kept for index in range(*one)):
                child = children[index]
                if child.start_byte <= start and end <= child.end_byte:
                    node = child
                elif not first <= index < last and not _is_short(child):
                    yield from self._apart_from_places(child)

    def _apart_from_places(self, node: Node) -> tuple[Span, ...]:
        """Returns what is cut out of a node in which there is no place."""
        if node.id not in self._known:
            found, stack = list[Span](), [node]
            while stack:
                children = stack.pop().children
                kept = _kept(children)
                found += _between(children, kept)
                stack += (child for one in kept for child in children[slice(*one)] if not _is_short(child))
            self._known[node.id] = tuple(found)
        return self._known[node.id]

    def _without(self, cuts: Sequence[Span]) -> Source:
        data, ends = self._source.data, [0, *(last for _, last in cuts)]
        starts = [*(first for first, _ in cuts), len(data)]
        kept = b"".join(data[end:start] for end, start in zip(ends, starts, strict=True))
        return replace(self._source, text=kept.decode())

    def _is_read_alike(self, tree: Tree, start: int, end: int, moved: int) -> bool:
        """Returns whether the nodes around the place are of the same types in the excerpt, and it has no new error."""
        if tree.root_node.has_error > self._root.has_error:
            return False
        return _types(self._root, start, end) == _types(tree.root_node, start - moved, end - moved)


def _is_short(node: Node) -> bool:
    return node.end_byte - node.start_byte <= SHORT or not node.child_count


def _kept(children: Sequence[Node], place: Range | None = None) -> list[Range]:
    """Returns the indices of the children that stay, where those of a place are beside it."""
    count = len(children)
    if count <= FEW:
        return [(0, count)]
    wanted = [(count - TAIL, count)]
    if place is not None:
        first, last = place
        wanted.insert(0, (first - first % GROUP - BESIDE, min(last - last % GROUP + GROUP + BESIDE, count)))
    kept, separator = [(0, HEAD)], _separator(children)
    for first, last in wanted:
        begun, ended = kept[-1]
        stop = next((at for at in range(ended, ended + REACH) if _ends(children, at, separator)), count)
        start = next((at for at in range(first, first - REACH, -1) if _ends(children, at, separator)), 0)
        if stop < start:
            kept[-1:] = [(begun, stop), (start, max(last, start))]
        else:
            kept[-1] = begun, max(ended, last)
    return kept


def _separator(children: Sequence[Node]) -> str:
    """Returns what stands between the children of a list; "" where nothing does."""
    middle = len(children) // 2
    types = Counter(child.type for child in children[middle - REACH : middle + REACH] if not child.is_named)
    ((kind, times),) = types.most_common(1) or [("", 0)]
    return kind if times > 1 else ""


def _ends(children: Sequence[Node], at: int, separator: str) -> bool:
    """Returns whether a list may be cut before the child ``at``."""
    return 0 < at < len(children) and (not separator or children[at - 1].type == separator)


def _between(children: Sequence[Node], kept: Sequence[Range]) -> Iterator[Span]:
    for (_, stop), (start, _) in pairwise(kept):
        yield children[stop].start_byte, children[start].start_byte


def _types(root: Node, start: int, end: int) -> list[str]:
    """Returns the types of the nodes around some bytes, the inmost first."""
    found, node = list[str](), root.descendant_for_byte_range(start, end)
    while node is not None:
        found.append(node.type)
        node = node.parent
    return found
