"""Nodes that the grammar accepts in a place where the language does not, and names that are declared twice.

The grammars of tree-sitter can also parse fragments: C's accepts statements outside every function, Java's any
expression as a statement. Queries over the tree find what the language's own parser rejects. A macro may make anything
legal in C, so the text around the gaps may break the rules. Of names that may be declared only once in a scope
(variables, keys, attributes) two clash if their weights sum to two: those of a prototype and of a function (0 and 1) do
not, those of two functions do. Only the names that a fill declares are checked.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeVar

from tree_sitter import Node, Query, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import CLASH, Declarations, Language, Role, Rules, kinds
from lacuna_model.languages.parsing import captured
from lacuna_model.syntax.faults import Fault, FilledTree, Original, Splice, carried_over, tree_faults, united

Spans = Sequence[tuple[int, int]]
Value = TypeVar("Value")
MAX_OCCURRENCES = 200  # of a name in its scope; a name used more often is declared nearby
DECLARATION = ("declaration", "declaration_statement", "export_statement")
UNNAMED = frozenset({b"_", b"<<"})  # a name that declares nothing, and YAML's merge key


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

    def __init__(self, declarations: Declarations, language: Language) -> None:
        self._own = declarations
        self._roles, self._through = _by_kind(declarations.roles), _by_kind(declarations.through)
        self._kinds = frozenset(declarations.names.split())
        self._query = Query(language.grammar(), f"[{' '.join(f'({kind})' for kind in self._kinds)}] @name")

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
        around, walls = own.scope, self._own.walls
        while walls and around.type not in walls and around.parent is not None:
            around = around.parent
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

    def _declared(self, name: Node, text: bytes) -> Declared | None:
        """The declaration of a name node; None if the node declares nothing."""
        child, holder = name, name.parent
        while holder is not None and holder.type in self._through:
            if not _leads(child, holder, self._through[holder.type]):
                return None
            child, holder = holder, holder.parent
        role = self._roles.get(holder.type) if holder is not None else None
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


def _by_kind(table: Mapping[str, Value]) -> dict[str, Value]:
    return {kind: value for names, value in table.items() for kind in names.split()}


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


NAMES = frozenset({"identifier", "type_identifier", "field_identifier"})
LINE_END = re.compile(rb"[\w\x80-\xff)\]}\"'`+-](?=[ \t\r]*(//[^\n]*)?\n)")
NEXT_TOKEN = re.compile(rb"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
# Nodes whose parts are separated by semicolons.
SERIES = kinds(
    "source_file block statement_list import_spec_list const_declaration var_spec_list type_declaration "
    "field_declaration_list interface_type expression_case type_case communication_case default_case"
)
SWITCHES = frozenset({"expression_switch_statement", "type_switch_statement", "select_statement"})
# Nodes that contain plain line ends, and the unnamed tokens that end a statement.
PROSE = frozenset({"comment", "raw_string_literal", "raw_string_literal_content"})
STRING = re.compile(r"(?!.*(?:content|fragment|start|end|concatenated|interpolation)).*(?:string|quote).*")
LAST_TOKENS = frozenset({")", "]", "}", '"', "`", "++", "--", "return", "break", "continue", "fallthrough"})


class Placement:
    """The rules of a language, for one document with gaps.

    Misplaced nodes of a kind that the document has apart from its gaps are accepted, since they must have a reason.
    """

    def __init__(self, language: Language) -> None:
        self._language = language
        self._rules = language.rules or Rules()
        self._standing: frozenset[Fault] | None = None

    def faults(self, own: FilledTree, original: Original, near: Spans | None, words: Spans) -> frozenset[Fault]:
        """The nodes near some byte ranges, or everywhere, that are out of place, and names that fills declare again.

        Reserved ``words`` are searched in some byte ranges.
        """
        found = self.strays(own.tree, near) | self.reserved_names(own.tree, own.text, words)
        if found:
            if self._standing is None:
                apart = (
                    self._lasting(original.without_lines) if original.unfilled.tree.root_node.has_error else frozenset()
                )
                self._standing = self._lasting(original.unfilled) | carried_over(apart, original.lines_put_back)
            gaps = original.unfilled.spans
            splices = [Splice(*old, new[1] - new[0]) for old, new in zip(gaps, own.spans, strict=True)]
            kinds = {fault.kind for fault in self._standing if not self._is_firm(fault)}
            firm = frozenset(filter(self._is_firm, found)) - carried_over(self._standing, splices)
            loose = frozenset(fault for fault in found if not self._is_firm(fault) and fault.kind not in kinds)
            found = firm | loose
        line_ends = line_end_faults(own.tree, own.text, near) if self._rules.line_ends else frozenset[Fault]()
        return found | line_ends | self._declared_anew(own, original.unfilled)

    def _is_firm(self, fault: Fault) -> bool:
        """Whether a fault is never excused, neither by others of its kind nor for lack of a better fill."""
        return fault.kind.partition(":")[0] in self._rules.firm

    def _lasting(self, original: FilledTree) -> frozenset[Fault]:
        """The faults of a text with gaps that the gaps do not cause.

        They touch no gap, and are not between a gap and a brace without its opener, which the gap may have held. Firm
        ones may touch a gap. In a text with errors only those count that may be due to a macro: the brackets tell a
        body without its function head from text outside all functions.
        """
        tree, text, gaps = original
        found = self.strays(tree)
        if tree.root_node.has_error:
            lasting = self._rules.lasting | self._rules.firm
            found = frozenset(fault for fault in found if fault.kind.partition(":")[0] in lasting)
        else:
            found |= self.reserved_names(tree, text, [(0, len(text))])
        torn_off = [fault.start for fault in tree_faults(tree) if text.startswith(b"}", fault.start)]
        headless = range(gaps[0][1], max(torn_off, default=0))
        firm = {fault for fault in found if self._is_firm(fault) and _beside(fault, gaps, 0)}
        return frozenset(firm | {one for one in found if one.start not in headless and _beside(one, gaps, 2)})

    def strays(self, tree: Tree, spans: Spans | None = None) -> frozenset[Fault]:
        """Return the misplaced nodes near some byte ranges, or everywhere without them."""
        query, found = _query(self._language), set[Fault]()
        judged: set[tuple[str, int]] = set()  # a block as long as the file is near every span
        for start, stop in united(spans) if spans is not None else [(0, tree.root_node.end_byte)]:
            for name, nodes in captured(query, tree.root_node, max(start - 1, 0), stop + 1).items():
                predicate = self._rules.predicates[name]
                work.check()
                new = [node for node in nodes if (name, node.id) not in judged]
                judged.update((name, node.id) for node in new)
                child = self._rules.blamed.get(name)
                for node in new:
                    if not predicate(node):
                        work.check()  # the parent that a fault names is looked for from the root
                        found.add(_fault(name, node, child))
        return frozenset(found)

    def reserved_names(self, tree: Tree, text: bytes, spans: Spans) -> frozenset[Fault]:
        """Return the names in some byte ranges that are reserved words, such as ``public`` in ``x public;``."""
        found = set()
        for begin, stop in spans:
            for word in self._rules.words.finditer(text, begin, stop):
                node = tree.root_node.descendant_for_byte_range(*word.span())
                if node is None or node.type not in NAMES or (node.start_byte, node.end_byte) != word.span():
                    continue
                if node.parent is None or node.parent.type not in self._rules.quoting:
                    found.add(Fault("RESERVED", *word.span()))
        return frozenset(found)

    def _declared_anew(self, own: FilledTree, original: FilledTree) -> frozenset[Fault]:
        """The names that fills declare a second time; names that were declared twice before may be so again."""
        finder = _repeated(self._language)
        found = [one.name for one in finder.repeated(*own)] if finder is not None else []
        if finder is None or not found:
            return frozenset()
        words = {own.text[one.start_byte : one.end_byte]: one for one in found}
        uses = [use.span() for word in words for use in re.finditer(re.escape(word), original.text)]
        before = [one.name for one in finder.repeated(original.tree, original.text, uses[:MAX_OCCURRENCES])]
        twice = {original.text[one.start_byte : one.end_byte] for one in before}
        anew = [one for word, one in words.items() if word not in twice]
        return frozenset(Fault("TWICE", one.start_byte, one.end_byte) for one in anew)


def placement_in(language: Language) -> Placement | None:
    """Return the placement rules for a document; None if its language has none."""
    return Placement(language) if language.rules is not None or language.declarations is not None else None


@cache
def _query(language: Language) -> Query:
    return Query(language.grammar(), language.rules.places if language.rules is not None else "")


@cache
def _repeated(language: Language) -> Repeated | None:
    own = language.declarations
    return Repeated(own, language) if own is not None else None


def _fault(name: str, node: Node, child: int | None) -> Fault:
    """A node as a fault; if its ``child`` is to blame, the kind of fault names the node's first child."""
    if child is not None:
        blamed = node.children[child]
        return Fault(f"{name}: {node.children[0].text!r}", blamed.start_byte, blamed.end_byte)
    parent = node.parent
    return Fault(f"{name}: {node.type} in {parent.type if parent else ''}", node.start_byte, node.end_byte)


def _beside(fault: Fault, spans: Spans, distance: int) -> bool:
    """Whether a fault has at least this distance in bytes from every gap."""
    return all(fault.end + distance <= start or end + distance <= fault.start for start, end in spans)


def line_end_faults(tree: Tree, text: bytes, spans: Spans | None) -> frozenset[Fault]:
    """Return the line ends in some byte ranges, or everywhere, that Go reads as semicolons where none may stand.

    Its grammar reads them as blanks. A line ends a statement if its last token may end one: a brace on the next line, a
    list without its last comma and an operator that comes too late are errors.
    """
    return frozenset(
        Fault("LINE END", line_end.start(), after)
        for start, stop in (spans if spans is not None else [(0, len(text))])
        for line_end, after in _line_ends(text, start, stop)
        if not _may_end(tree.root_node, text, line_end.start(), after) and _ends_statement(tree.root_node, line_end)
    )


def _line_ends(text: bytes, start: int, stop: int) -> Iterator[tuple[re.Match[bytes], int]]:
    """The last character of each line, including the line before a range, and the offset of the next token."""
    while start and text[start - 1 : start].isspace():
        start -= 1
    newline = text.find(b"\n", stop)
    for found in LINE_END.finditer(text, max(start - 1, 0), newline + 1 if newline >= 0 else len(text)):
        following = NEXT_TOKEN.match(text, found.end())
        if following is not None and following.end() < len(text):
            yield found, following.end()


def _may_end(root: Node, text: bytes, last: int, after: int) -> bool:
    """Whether a semicolon may stand between two tokens."""
    around = root.descendant_for_byte_range(last, after + 1)
    if around is None or around.type in SERIES or around.type in PROSE:
        return True
    return around.type in SWITCHES and text[after : after + 1] != b"{"


def _ends_statement(root: Node, line_end: re.Match[bytes]) -> bool:
    """Whether a line's last token may end a statement, so that Go reads a semicolon there."""
    if line_end.start(1) >= 0:  # the apparent comment may be part of a string
        comment = root.descendant_for_byte_range(*line_end.span(1))
        if comment is None or comment.type != "comment":
            return False
    token = root.descendant_for_byte_range(*line_end.span())
    if token is None or token.type in PROSE:
        return False
    return token.is_named or token.type in LAST_TOKENS


def strings_around(original: FilledTree) -> list[Node | None]:
    """The innermost string around each gap of a tree without errors; None for a gap in code, also within a string."""
    root = original.tree.root_node
    return [None if root.has_error else _string_around(root, *gap) for gap in original.spans]


def _string_around(root: Node, start: int, end: int) -> Node | None:
    node = root.descendant_for_byte_range(start, end)
    while node is not None and node.parent is not None and not STRING.fullmatch(node.type):
        work.check()
        if "interpolation" in node.type or "substitution" in node.type:
            return None
        node = node.parent
    is_around = node is not None and node.parent is not None and node.start_byte < start <= end < node.end_byte
    return node if is_around else None


def torn(filled: FilledTree, original: FilledTree, strings: Sequence[Node | None]) -> Iterator[Fault]:
    """Yield a fault for each fill whose string now begins or ends elsewhere."""
    for (start, end), (first, last), string in zip(filled.spans, original.spans, strings, strict=True):
        if string is None:
            continue
        place = start - (first - string.start_byte), end + string.end_byte - last
        node = filled.tree.root_node.descendant_for_byte_range(*place)
        while node is not None and node.parent is not None and node.type != string.type:
            work.check()
            node = node.parent
        if node is None or (node.type, node.start_byte, node.end_byte) != (string.type, *place):
            yield Fault("TORN", start, end)
