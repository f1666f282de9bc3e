"""Placement: nodes that the grammar accepts in a place where the language does not.

The grammars of tree-sitter can also parse fragments: C's accepts statements outside every function, Java's any
expression as a statement. Queries over the tree find what the language's own parser rejects. A macro may make anything
legal in C, so the text around the gaps may break the rules.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from tree_sitter import Node, Query, QueryCursor, Tree

from lacuna_model.languages.language import Language
from lacuna_model.languages.rules import Rules
from lacuna_model.syntax.check.error_set import Fault, Filled, Splice, carried_over, tree_faults
from lacuna_model.syntax.check.indentation import united
from lacuna_model.syntax.check.line_ends import line_end_faults
from lacuna_model.syntax.check.repeated import Repeated, faults_of

Spans = Sequence[tuple[int, int]]
NAMES = frozenset({"identifier", "type_identifier", "field_identifier"})


class Placement:
    """The rules of a language, for one document with gaps.

    Misplaced nodes of a kind that the document has apart from its gaps are accepted, since they must have a reason.
    """

    def __init__(self, language: Language) -> None:
        self._language = language
        self._rules = language.rules or Rules()
        self.accepts_loose = False  # whether all nodes may be out of place, but for firm ones
        self._standing: frozenset[Fault] | None = None

    def faults(self, own: Filled, original: Filled, near: Spans | None, words: Spans) -> frozenset[Fault]:
        """The nodes near some byte ranges, or everywhere, that are out of place, and names that fills declare again.

        Reserved ``words`` are searched in some byte ranges.
        """
        found = self.strays(own.tree, near) | self.reserved_names(own.tree, own.text, words)
        if found:
            if self._standing is None:
                self._standing = self._lasting(original)
            splices = [Splice(*old, new[1] - new[0]) for old, new in zip(original.spans, own.spans, strict=True)]
            kinds = {fault.kind for fault in self._standing if not self._is_firm(fault)}
            firm = frozenset(filter(self._is_firm, found)) - carried_over(self._standing, splices)
            loose = frozenset(fault for fault in found if not self._is_firm(fault) and fault.kind not in kinds)
            found = firm if self.accepts_loose else firm | loose
        if not self.accepts_loose:
            found |= self.line_ends(own.tree, own.text, near)
        return found | self._declared_anew(own, original)

    def _is_firm(self, fault: Fault) -> bool:
        """Whether a fault is never excused, neither by others of its kind nor for lack of a better fill."""
        return fault.kind.partition(":")[0] in self._rules.firm

    def strays(self, tree: Tree, spans: Spans | None = None) -> frozenset[Fault]:
        """Return the misplaced nodes near some byte ranges, or everywhere without them."""
        return frozenset(self._strays(tree, spans))

    def _lasting(self, original: Filled) -> frozenset[Fault]:
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

    def _strays(self, tree: Tree, spans: Spans | None = None) -> Iterator[Fault]:
        cursor = QueryCursor(_query(self._language))
        judged: set[tuple[str, int]] = set()  # a block as long as the file is near every span
        for start, stop in united(spans) if spans is not None else [(0, tree.root_node.end_byte)]:
            cursor.set_byte_range(max(start - 1, 0), stop + 1)
            for name, nodes in cursor.captures(tree.root_node).items():
                predicate = self._rules.predicates[name]
                new = [node for node in nodes if (name, node.id) not in judged]
                judged.update((name, node.id) for node in new)
                child = self._rules.blamed.get(name)
                yield from (_fault(name, node, child) for node in new if not predicate(node))

    def reserved_names(self, tree: Tree, text: bytes, spans: Spans) -> frozenset[Fault]:
        """Return the names in some byte ranges that are reserved words, such as ``public`` in ``x public;``."""
        found = set()
        for begin, stop in spans:
            for word in self._rules.words.finditer(text, begin, stop):
                node = tree.root_node.descendant_for_byte_range(*word.span())
                if node is not None and _is_name(node, word) and not self._quoted(node):
                    found.add(Fault("RESERVED", *word.span()))
        return frozenset(found)

    def line_ends(self, tree: Tree, text: bytes, spans: Spans | None = None) -> frozenset[Fault]:
        """Return the line ends near some byte ranges, or everywhere, that are semicolons where none may stand."""
        return line_end_faults(tree, text, spans) if self._rules.line_ends else frozenset()

    def _declared(self, filled: Filled) -> frozenset[Fault]:
        """The names that are declared in fills and somewhere else as well."""
        finder = _repeated(self._language)
        return faults_of(finder.repeated(*filled)) if finder is not None else frozenset()

    def _declared_anew(self, own: Filled, original: Filled) -> frozenset[Fault]:
        """The names that fills declare a second time and that were not declared twice before."""
        return frozenset(
            fault
            for fault in self._declared(own)
            if all(
                original.text[known.start : known.end] != own.text[fault.start : fault.end]
                for known in self._declared(original._replace(spans=[_old_place(fault, own.spans, original.spans)]))
            )
        )

    def _quoted(self, node: Node) -> bool:
        return node.parent is not None and node.parent.type in self._rules.quoting


def placement_in(language: Language) -> Placement | None:
    """Return the placement rules for a document; None if its language has none."""
    return Placement(language) if language.rules is not None or language.declarations is not None else None


@cache
def _query(language: Language) -> Query:
    return Query(language.grammar(), language.rules.places if language.rules is not None else "")


@cache
def _repeated(language: Language) -> Repeated | None:
    own = language.declarations
    return Repeated(own, language.grammar()) if own is not None else None


def _is_name(node: Node, word: re.Match[bytes]) -> bool:
    return node.type in NAMES and (node.start_byte, node.end_byte) == word.span()


def _fault(name: str, node: Node, child: int | None) -> Fault:
    """A node as a fault; if its ``child`` is to blame, the kind of fault names the node's first child."""
    if child is not None:
        blamed = node.children[child]
        return Fault(f"{name}: {node.children[0].text!r}", blamed.start_byte, blamed.end_byte)
    parent = node.parent
    return Fault(f"{name}: {node.type} in {parent.type if parent else ''}", node.start_byte, node.end_byte)


def _old_place(fault: Fault, spans: Spans, old_spans: Spans) -> tuple[int, int]:
    """Where a fault was before some ranges were replaced by ``spans``; for a fault in one of these, its old range."""
    shift = 0
    for (start, end), old in zip(spans, old_spans, strict=True):
        if fault.end <= start:
            break
        if fault.start < end:
            return old
        shift = old[1] - end
    return fault.start + shift, fault.end + shift


def _beside(fault: Fault, spans: Spans, distance: int) -> bool:
    """Whether a fault has at least this distance in bytes from every gap."""
    return all(fault.end + distance <= start or end + distance <= fault.start for start, end in spans)
