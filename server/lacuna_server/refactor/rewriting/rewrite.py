"""A template, the rewrite of a place by it, and excerpts: a file cut down to what decides how a place is read.

Of an excerpt these are the nodes around the place and what stands near it. So a long list of nodes, such as statements
or elements, keeps its ends and what is beside the place. What is asked of each place then costs as much in a long file
as in a short one.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from tree_sitter import Node, Tree

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.region import regex_grammar
from lacuna_server.refactor.places.matching import Span
from lacuna_server.refactor.places.pattern import VARIABLE
from lacuna_server.refactor.places.source import Source, ancestors

TOKEN = re.compile(rf"<<fill(?::(?P<options>.*?))?>>|{VARIABLE.pattern}", re.DOTALL)
OPTIONS = "line, lines=N, tokens=N, regex=EXPRESSION"
MAX_HOLE_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class MetaVariable:
    """A metavariable. With ``many`` (``$$$NAME``) it matches any number of nodes, with their separators."""

    name: str
    many: bool


Piece: TypeAlias = str | MetaVariable | Region


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template; ``text`` is as it was written, and ``pattern`` the pattern that it belongs to, if any."""

    parts: tuple[Piece, ...]
    text: str = ""
    pattern: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names of the metavariables that the template uses."""
        return frozenset(part.name for part in self.parts if isinstance(part, MetaVariable))

    @property
    def holes(self) -> tuple[Span, ...]:
        """The spans of its holes in bytes of its text."""
        found = (token for token in TOKEN.finditer(self.text) if token[0].startswith("<<"))
        return tuple((len(self.text[: one.start()].encode()), len(self.text[: one.end()].encode())) for one in found)


def parse_template(text: str, known: frozenset[str]) -> Template:
    """Parses a template. Raises RequestError for an invalid hole and for a metavariable that is not ``known``."""
    parts: list[Piece] = []
    position = 0
    for token in TOKEN.finditer(text):
        parts.append(text[position : token.start()])
        position = token.end()
        parts.append(_hole(token["options"] or "") if token[0].startswith("<<") else _variable(token, known))
    parts.append(text[position:])
    return Template(tuple(part for part in parts if part != ""), text=text)


def parse_parts(text: str) -> tuple[str | Region, ...]:
    """Parses text with holes and without metavariables. Raises RequestError."""
    return tuple(part for part in parse_template(text, frozenset()).parts if not isinstance(part, MetaVariable))


def _variable(token: re.Match[str], known: frozenset[str]) -> MetaVariable:
    sigil, name = token.groups()[-2:]
    if name not in known:
        bound = ", ".join(f"${name}" for name in sorted(known)) or "none"
        raise RequestError(f"the template uses {sigil}{name}, which nothing binds; bound: {bound}")
    return MetaVariable(name, sigil == "$$$")


def _hole(options: str) -> Region:
    found: dict[str, Any] = {}
    while options:
        if options.startswith("regex="):
            found["regex"] = options.removeprefix("regex=")
            regex_grammar(found["regex"])  # an invalid one is refused here, before a model is loaded
            break
        option, _, options = options.partition(":")
        name, equals, digits = option.partition("=")
        if option == "line":
            found["single_line"] = True
        elif name in ("lines", "tokens") and equals:
            if not re.fullmatch(r"[1-9]\d{,3}", digits, re.ASCII) or int(digits) > MAX_HOLE_TOKENS:
                raise RequestError(f"{option!r} of a hole is not a number from 1 to {MAX_HOLE_TOKENS}")
            found[f"max_{name}"] = int(digits)
        else:
            raise RequestError(f"a hole has no option {option!r}; known: {OPTIONS}")
    return Region(0, 0, **found)


# A hole is a region whose offsets are not known yet.
Part: TypeAlias = str | Region
TOO_DEEP = "the code has too many nodes within or beside each other to be searched; not changed"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replaces the bytes ``start``..``end`` of a file by ``parts``: text and holes.

    A ``support`` rewrite, such as an import, is useful only together with another one of its file.
    """

    start: int
    end: int
    parts: tuple[Part, ...]
    label: str
    support: bool = False
    instruction: str = ""

    @property
    def holes(self) -> tuple[Region, ...]:
        """The holes in order."""
        return tuple(part for part in self.parts if isinstance(part, Region))

    def moved(self, by: int) -> "Rewrite":
        """Returns the rewrite in a text that has so many more bytes before it."""
        return replace(self, start=self.start + by, end=self.end + by)

    def filled(self, fills: Sequence[str]) -> str:
        """Returns the new text, with one fill for every hole."""
        return "".join(self._texts(fills))

    def spans(self, fills: Sequence[str]) -> list[tuple[int, int]]:
        """Returns the byte range of every fill in the new text."""
        ends = list(accumulate((len(text.encode()) for text in self._texts(fills)), initial=0))
        return [span for part, span in zip(self.parts, pairwise(ends), strict=True) if isinstance(part, Region)]

    def _texts(self, fills: Sequence[str]) -> list[str]:
        remaining = iter(fills)
        return [part if isinstance(part, str) else next(remaining) for part in self.parts]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A place (byte offset ``at``) that seems to match but is not changed, and the reason."""

    at: int
    reason: str


def disjoint(source: Source, rewrites: Iterable[Rewrite]) -> tuple[list[Rewrite], list[str]]:
    """Returns the rewrites in order without those that overlap an earlier or outer one, and a line about each of these.

    An insertion may directly precede a place. Of two insertions at one offset the second is left out, because their
    order would be arbitrary.
    """
    chosen: list[Rewrite] = []
    refused: list[str] = []
    for rewrite in sorted(rewrites, key=lambda rewrite: (rewrite.start, rewrite.start < rewrite.end, -rewrite.end)):
        last = chosen[-1] if chosen else None
        if last is None or (rewrite.start >= last.end and (rewrite.start, rewrite.end) != (last.start, last.end)):
            chosen.append(rewrite)
        elif (rewrite.start, rewrite.end, rewrite.parts) != (last.start, last.end, last.parts):
            line, column = source.position(rewrite.start)
            outer = source.position(last.start)
            refused.append(f"{source.path}:{line}:{column}: overlaps the place at {outer[0]}:{outer[1]}")
    return chosen, refused


def first_line(text: str) -> str:
    """Returns the first line of a text, shortened to 60 characters, as a label for a place."""
    line = text.strip().split("\n", 1)[0].rstrip()
    return line if len(line) <= 60 and line == text.strip() else f"{line[:59]}…"


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
    node = root.descendant_for_byte_range(start, end)
    return [one.type for one in (node, *ancestors(node))] if node is not None else []
