"""Names that a language lets be declared only once in a scope: variables, keys, attributes. No grammar checks this.

Two declarations of a name clash if their weights sum to two: those of a prototype and of a function (0 and 1) do not,
those of two functions do. Only the names that a fill declares are checked.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tree_sitter import Language, Node, Query, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import CLASH, Declarations, Role
from lacuna_model.languages.parsing import captured
from lacuna_model.syntax.faults import Fault

MAX_OCCURRENCES = 200  # of a name in its scope; a name used more often is declared nearby
DECLARATION = ("declaration", "declaration_statement", "export_statement")
UNNAMED = frozenset({b"_", b"<<"})  # a name that declares nothing, and YAML's merge key

Spans = Sequence[tuple[int, int]]


class Declared(NamedTuple):
    """A declaration: its name, where it begins, and the properties that decide whether it clashes with another one."""

    name: Node
    begin: int
    scope: Node
    space: str
    weight: int
    signature: bytes
    renews: bool

    def clashes(self, other: "Declared") -> bool:
        """Whether both may not be in one scope."""
        later = max(self, other, key=lambda one: one.name.start_byte)
        return (
            self.name != other.name
            and self.space == other.space
            and self.weight + other.weight >= CLASH
            and self.signature == other.signature
            and not later.renews
        )


class Repeated:
    """Finds the names that a document declares twice, by a language's ``Declarations``."""

    def __init__(self, declarations: Declarations, grammar: Language) -> None:
        self._own = declarations
        self._kinds = frozenset(declarations.names.split())
        self._query = Query(grammar, f"[{' '.join(f'({kind})' for kind in self._kinds)}] @name")

    def repeated(self, tree: Tree, text: bytes, spans: Spans) -> list[Declared]:
        """Return the declarations that are in some byte ranges, or begin there, and clash with another one."""
        return [
            own
            for own in self._declared_in(tree, text, spans)
            if any(map(own.clashes, self._others(own, tree.root_node, text)))
        ]

    def _declared_in(self, tree: Tree, text: bytes, spans: Spans) -> Iterator[Declared]:
        for start, end in spans:
            line_end = text.find(b"\n", end)
            stop = len(text) if line_end < 0 else line_end
            found = captured(self._query, tree.root_node, start, stop) if start < end else {}
            for node in found.get("name", ()):
                work.check()
                own = self._declared(node, text)
                if own is not None and own.begin < end and start < node.end_byte:
                    yield own

    def _others(self, own: Declared, root: Node, text: bytes) -> Iterator[Declared]:
        """The declarations of the same name whose scope is that of ``own``, or one that it clashes with."""
        around = self._wall(own.scope) if self._own.walls else own.scope
        for other in self._of_name(text[own.name.start_byte : own.name.end_byte], around, root, text):
            if self._is_shared(own, other) or self._is_shared(other, own):
                yield other

    def _of_name(self, name: bytes, around: Node, root: Node, text: bytes) -> Iterator[Declared]:
        found = re.compile(re.escape(name)).finditer(text, around.start_byte, around.end_byte)
        for match in islice(found, MAX_OCCURRENCES):
            work.check()
            node = root.descendant_for_byte_range(*match.span())
            while node is not None and node.type not in self._kinds and node.parent is not None:
                node = node.parent
            if node is not None and (node.start_byte, node.end_byte) == match.span():
                declared = self._declared(node, text)
                if declared is not None:
                    yield declared

    def _is_shared(self, outer: Declared, inner: Declared) -> bool:
        """Whether the scope of ``outer`` is that of ``inner``, or encloses it up to a wall."""
        if outer.scope == inner.scope:
            return True
        if not self._own.walls or (self._own.ordered and outer.name.start_byte > inner.name.start_byte):
            return False
        around: Node | None = inner.scope
        while around is not None and around.type not in self._own.walls:
            around = self._scope(around.parent)
            if around == outer.scope:
                return around.type not in self._own.members
        return False

    def _wall(self, scope: Node) -> Node:
        while scope.type not in self._own.walls and scope.parent is not None:
            scope = scope.parent
        return scope

    def _declared(self, name: Node, text: bytes) -> Declared | None:
        """The declaration of a name node; None if the node declares nothing."""
        child, holder = name, name.parent
        while holder is not None and holder.type in self._own.through:
            if not _leads(child, holder, self._own.through[holder.type]):
                return None
            child, holder = holder, holder.parent
        role = self._own.roles.get(holder.type) if holder is not None else None
        if role is None or holder is None or not _leads(child, holder, role.fields):
            return None
        scope = holder if role.within else self._scope(holder.parent)
        while role.until and scope is not None and scope.type != role.until:
            scope = scope.parent
        if scope is None or text[name.start_byte : name.end_byte] in UNNAMED:
            return None
        weight = role.weight if isinstance(role.weight, int) else role.weight(holder, child)
        signature, renews = _signature(holder, role, text), role.renews(holder, child)
        return Declared(name, _begin(holder, scope), scope, role.space, weight, signature, renews)

    def _scope(self, node: Node | None) -> Node | None:
        """The innermost scope around a node, the node itself included; None inside an ERROR node."""
        while node is not None and node.type not in self._own.scopes and node.parent is not None:
            if node.is_error:
                return None
            work.check()
            node = node.parent
        if node is not None and node.type in self._own.bodies and node.parent is not None:
            return node.parent if node.parent.type in self._own.owners else node
        return node


def faults_of(repeated: Sequence[Declared]) -> frozenset[Fault]:
    """Declarations as faults."""
    return frozenset(Fault("TWICE", one.name.start_byte, one.name.end_byte) for one in repeated)


def _leads(child: Node, parent: Node, fields: str) -> bool:
    """Whether a child is in the first of some fields that its parent has."""
    if fields in ("", "*"):
        return bool(fields) or child == parent.named_children[0]
    found = (parent.children_by_field_name(one) for one in fields.split())
    return child in next((children for children in found if children), ())


def _begin(holder: Node, scope: Node) -> int:
    """The start of the statement that makes a node a declaration."""
    while holder.parent is not None and holder.parent != scope and holder.parent.type.endswith(DECLARATION):
        holder = holder.parent
    return holder.start_byte


def _signature(holder: Node, role: Role, text: bytes) -> bytes:
    """The bytes that distinguish functions of one name: the types of their parameters, or the parameters as written."""
    parts = []
    for one in role.signature.split():
        for found in holder.children_by_field_name(one) or [child for child in holder.children if child.type == one]:
            types = [parameter.child_by_field_name("type") for parameter in found.named_children]
            nodes = [kind for kind in types if kind is not None] if None not in types else [found]
            parts += [b" ".join(text[node.start_byte : node.end_byte].split()) for node in nodes]
            parts.append(b";")
    return b",".join(parts)
