"""Infers a rule from one change of the user: a structural pattern and a template for all similar places.

The old and the new text of the changed place are compared token by token. A similar place must contain the tokens that
the change touched. The tokens that it left alone may differ there and are carried over. Text that the user wrote only
for this place, such as a message, becomes a hole, which the model fills at every other place.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_model.next_edit.changes import comparable, hunks, nearest
from lacuna_server.refactor.places.select import by_pattern
from lacuna_server.refactor.places.source import Source

HOLE = "<<fill:line>>"
MAX_LINES = 8
# Fields that identify a node: the called function, the operator, the attribute.
_KEPT_FIELDS = frozenset(
    ("function", "name", "method", "operator", "operators", "type", "attribute", "property", "field", "constructor")
)
_CONSTANTS = frozenset(("none", "true", "false", "null", "nil", "self", "this", "super"))
_LITERAL = re.compile("string|number|integer|float|char")
_LIST = re.compile("(arguments|parameters|_list)$")
_PART = re.compile("keyword_argument|pair|argument|parameter")
_OWNERS = frozenset(("object", "operand", "value", "argument", "scope", "path", "receiver", "expression"))
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """A place that matches ``pattern`` becomes ``template``; a place already changed matches ``done``."""

    pattern: str
    template: str
    done: str


@dataclass(frozen=True, slots=True)
class ByteHunk:
    """A change: the bytes ``start``..``end`` of the old text became ``new_start``..``new_end`` of the new text."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A token: a node without children, or a whole literal."""

    start: int
    end: int
    text: str
    literal: bool


def infer(old: Source, new: Source, at: int) -> ChangeRule:
    """Returns the rule of the change nearest to byte ``at`` of the new text; raises RequestError if there is none."""
    hunk = find_hunk(old.data, new.data, at)
    node = old.tree.root_node.descendant_for_byte_range(hunk.start, hunk.end)
    while node is not None and node.parent is not None:
        if old.slice(node.start_byte, node.end_byte).count("\n") >= MAX_LINES:
            break
        if not _is_part(node) and (rule := _Comparison.of(old, new, node, hunk)) is not None:
            return rule
        node = node.parent
    raise RequestError("this change is no rule for other places: it adds a statement, or nothing in it names a place")


def _is_part(node: Node) -> bool:
    """Whether a node is too small for a pattern of its own: a token, a literal, a function's name, an argument."""
    parent = node.parent
    field = (
        next((parent.field_name_for_child(n) for n, child in enumerate(parent.children) if child == node), "")
        if parent
        else ""
    )
    return not node.children or bool(_LITERAL.search(node.type) or _PART.search(node.type)) or field in _KEPT_FIELDS


def find_hunk(old: bytes, new: bytes, at: int) -> ByteHunk:
    """Returns the change nearest to byte ``at`` of the new text, without the text that both sides share.

    Raises RequestError if the texts are equal.
    """
    texts = old.decode(), new.decode()
    row = len((new[:at].decode(errors="ignore") + ".").splitlines()) - 1
    found = nearest(hunks(*texts), row)
    if found is None:
        raise RequestError("nothing has been changed in this file since it was saved")
    before, after = ([line.encode() for line in text.splitlines(keepends=True)] for text in texts)
    start, new_start = len(b"".join(before[: found.start])), len(b"".join(after[: found.new_start]))
    a, b = b"".join(before[found.start : found.end]), b"".join(after[found.new_start : found.new_end])
    lead = _common(a, b)
    tail = _common(a[lead:][::-1], b[lead:][::-1])
    return ByteHunk(start + lead, start + len(a) - tail, new_start + lead, new_start + len(b) - tail)


def _common(a: bytes, b: bytes) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def leaves(node: Node, start: int, end: int) -> Iterator[Leaf]:
    """Yields the tokens of a node between two byte offsets."""
    if node.end_byte <= start or node.start_byte >= end:
        return
    literal = node.is_named and bool(_LITERAL.search(node.type))
    if literal or not node.children:
        yield Leaf(node.start_byte, node.end_byte, (node.text or b"").decode(), literal)
        return
    for child in node.children:
        yield from leaves(child, start, end)


class _Comparison:
    """Compares the old and the new tokens of one node."""

    def __init__(self, node: Node, before: Sequence[Leaf], after: Sequence[Leaf]) -> None:
        self._node, self._before, self._after = node, before, after
        self._texts = {leaf.text for leaf in after}
        matcher = difflib.SequenceMatcher(None, [t.text for t in before], [t.text for t in after], autojunk=False)
        self._blocks = [block for block in matcher.get_matching_blocks() if block.size]
        self._index = {leaf.start: index for index, leaf in enumerate(before)}
        self._holes: dict[int, tuple[int, str]] = {}  # by first old token: the end (exclusive) and its name
        self._anchored = False

    @classmethod
    def of(cls, old: Source, new: Source, node: Node, hunk: ByteHunk) -> ChangeRule | None:
        """Returns the rule of a changed node, or None if it is not whole in the new text or gives no usable rule."""
        start = node.start_byte + hunk.new_start - hunk.start
        end = node.end_byte + hunk.new_end - hunk.end
        after = list(leaves(new.tree.root_node, start, end))
        if not after or (after[0].start, after[-1].end) != (start, end):
            return None
        before = list(leaves(node, node.start_byte, node.end_byte))
        if not comparable([leaf.text for leaf in before], [leaf.text for leaf in after]):
            return None
        comparison = cls(node, before, after)
        return comparison._rule(old, new)

    def _rule(self, old: Source, new: Source) -> ChangeRule | None:
        pattern = self._pattern(self._node, "", old)
        if not self._anchored or not _matches(old, pattern, self._node):
            return None
        template, done = self._template(new, HOLE), self._template(new, "$_")
        return ChangeRule(pattern, template, done) if template != pattern else None

    # --- the pattern: old text, with names for the parts that may vary

    def _pattern(self, node: Node, field: str, old: Source) -> str:
        first, last = self._tokens(node)
        if field and self._may_vary(node, field, old):
            return self._named(first, last)
        if last - first == 1:
            self._anchored = self._anchored or bool(_WORD.search(self._before[first].text))
            return self._before[first].text
        listed = self._listed(node) if _LIST.search(node.type) else (0, 0)
        parts: list[str] = []
        position = node.start_byte
        for number, child in enumerate(node.children):
            parts.append(old.slice(position, child.start_byte))
            position = child.end_byte
            if child.start_byte == child.end_byte:  # a token without text, such as a dedent
                continue
            if number == listed[0] and listed[1] > listed[0]:
                beginning, _ = self._tokens(child)
                _, ending = self._tokens(node.children[listed[1] - 1])
                self._holes[beginning] = ending, f"$$${self._letter()}"
                parts.append(self._holes[beginning][1])
            elif not listed[0] < number < listed[1]:
                parts.append(self._pattern(child, node.field_name_for_child(number) or "operand", old))
            else:
                parts.pop()
        return "".join(parts)

    def _listed(self, node: Node) -> tuple[int, int]:
        """Returns the range of unchanged children at the start of a list, if ``$$$`` may match them."""
        items = [n for n, child in enumerate(node.children) if child.is_named and child.start_byte < child.end_byte]
        kept = 0
        while kept < len(items) and self._untouched(*self._tokens(node.children[items[kept]])):
            kept += 1
        if not kept or any(self._mentioned(node.children[number]) for number in items[:kept]):
            return (0, 0)
        return items[0], items[kept - 1] + 1

    def _may_vary(self, node: Node, field: str, old: Source) -> bool:
        """Whether a part may be any text at another place.

        That holds for an operand that the change left alone or moved, and for a message if the change touched more than
        it.
        """
        first, last = self._tokens(node)
        if field in _KEPT_FIELDS or node.type in _CONSTANTS or not node.is_named or _LIST.search(node.type):
            return False
        if self._untouched(first, last):
            return not (field in _OWNERS and _is_global(node, old))
        if last - first > 1:
            return False
        alone = sum(not self._untouched(index, index + 1) for index in range(len(self._before))) == 1
        return self._before[first].text in self._texts or ("string" in node.type and not alone)

    def _named(self, first: int, last: int) -> str:
        texts = [leaf.text for leaf in self._before[first:last]]
        same = (name for at, (end, name) in self._holes.items() if [t.text for t in self._before[at:end]] == texts)
        name = next(same, f"${self._letter()}")
        self._holes[first] = last, name
        return name

    def _letter(self) -> str:
        return chr(ord("A") + len(self._holes))

    # --- the template: new text, with the named parts carried over

    def _template(self, new: Source, hole: str) -> str:
        parts: list[str] = []
        position, skip = self._after[0].start, 0
        for number, leaf in enumerate(self._after):
            if number < skip:
                position = leaf.end
                continue
            parts.append(new.slice(position, leaf.start))
            position = leaf.end
            old = self._counterpart(number)
            if old is not None and old in self._holes:
                ending, name = self._holes[old]
                parts.append(name)
                skip = number + ending - old
            elif old is None:
                parts.append(self._written(leaf, hole))
            else:
                parts.append(leaf.text)
        return "".join(parts)

    def _written(self, leaf: Leaf, hole: str) -> str:
        """Returns the template of a token that the user wrote: a name from the pattern, a hole, or the token itself."""
        for first, (last, name) in self._holes.items():
            texts = [token.text for token in self._before[first:last]]
            if texts == [leaf.text]:
                return name
            if leaf.literal and self._is_string(leaf) and (not self._untouched(first, last) or _says(leaf, texts)):
                return hole
        return leaf.text

    def _is_string(self, leaf: Leaf) -> bool:
        return not leaf.text[:1].isdigit()

    # --- tokens that both texts share

    def _tokens(self, node: Node) -> tuple[int, int]:
        first = self._index[next(leaves(node, node.start_byte, node.end_byte)).start]
        last = first
        while last < len(self._before) and self._before[last].end <= node.end_byte:
            last += 1
        return first, last

    def _untouched(self, first: int, last: int) -> bool:
        return any(block.a <= first and last <= block.a + block.size for block in self._blocks)

    def _counterpart(self, number: int) -> int | None:
        for block in self._blocks:
            if block.b <= number < block.b + block.size:
                return block.a + number - block.b
        return None

    def _mentioned(self, node: Node) -> bool:
        """Whether a token that the user wrote repeats or names this part."""
        first, last = self._tokens(node)
        texts = [token.text for token in self._before[first:last]]
        anew = [leaf for number, leaf in enumerate(self._after) if self._counterpart(number) is None]
        return any([leaf.text] == texts or _says(leaf, texts) for leaf in anew)


def _matches(source: Source, pattern: str, node: Node) -> bool:
    """Whether a pattern is valid and matches the place that it was made from."""
    try:
        return any(
            (match.start, match.end) == (node.start_byte, node.end_byte) for match in by_pattern(source, pattern)
        )
    except RequestError:
        return False


def _is_global(node: Node, source: Source) -> bool:
    """Whether a name is a type, or imported or defined for the whole file; such a name must not vary."""
    name = (node.text or b"").decode().split(".")[0]
    defined = (
        rf"^(import|from|use|using|#include|require)\b.*\b{re.escape(name)}\b|^\S*\s*\b{re.escape(name)}\s*:?=(?!=)"
    )
    return name[:1].isupper() or re.search(defined, source.text, re.MULTILINE) is not None


def _says(leaf: Leaf, texts: Sequence[str]) -> bool:
    """Whether a literal contains one of these names."""
    return leaf.literal and any(len(text) > 1 and re.search(rf"\b{re.escape(text)}\b", leaf.text) for text in texts)
