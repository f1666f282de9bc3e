"""Placement: nodes that the grammar accepts in a place where the language does not.

The grammars of tree-sitter can also parse fragments: C's accepts statements outside every function, Java's any
expression as a statement. Queries over the tree find what the language's own parser rejects. A macro may make anything
legal in C, so the text around the gaps may break the rules.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property

from tree_sitter import Node, Query, QueryCursor, Tree

from lacuna_model.languages.language import Language
from lacuna_model.languages.rules import Rules
from lacuna_model.syntax.check.error_set import Fault
from lacuna_model.syntax.check.indentation import united
from lacuna_model.syntax.check.line_ends import line_end_faults
from lacuna_model.syntax.check.repeated import Repeated, faults_of

NAMES = frozenset({"identifier", "type_identifier", "field_identifier"})


class Placement:
    """The rules of a language, without those that a document breaks outside its gaps (``elsewhere``).

    ``excused`` are the kinds of faults that are accepted: none at first, then all (None), then those of a valid fill.
    """

    def __init__(self, language: Language, elsewhere: Tree | None) -> None:
        self._language = language
        self._rules = language.rules or Rules()
        self._elsewhere = elsewhere
        self.excused: frozenset[str] | None = frozenset()

    @cached_property
    def _loose(self) -> frozenset[str]:
        """The kinds of faults in the rest of the document, which are accepted because they must have a reason."""
        return frozenset(fault.kind for fault in self._lasting(self._elsewhere)) if self._elsewhere else frozenset()

    def is_firm(self, fault: Fault) -> bool:
        """Whether a fault is never excused, neither by others of its kind nor for lack of a better fill."""
        return fault.kind.partition(":")[0] in self._rules.firm

    def held_against(self, faults: frozenset[Fault]) -> frozenset[Fault]:
        """The faults that are not excused."""
        firm = frozenset(filter(self.is_firm, faults))
        excused = self.excused
        return firm if excused is None else firm | frozenset(fault for fault in faults if fault.kind not in excused)

    def strays(self, tree: Tree, spans: Sequence[tuple[int, int]] | None = None) -> frozenset[Fault]:
        """Return the misplaced nodes near some byte ranges, or everywhere without them."""
        found = frozenset(self._strays(tree, spans))
        return frozenset(fault for fault in found if self.is_firm(fault) or fault.kind not in self._loose)

    def standing(self, tree: Tree, text: bytes) -> frozenset[Fault]:
        """The faults of a text with gaps that the gaps do not cause."""
        words = frozenset() if tree.root_node.has_error else self.reserved_names(tree, text, [(0, len(text))])
        return words | self._lasting(tree)

    def _lasting(self, tree: Tree) -> frozenset[Fault]:
        """The faults that no gap causes: all in a text without errors, otherwise those that may be due to a macro.

        Gaps that break a text misplace many nodes. But the brackets tell a body without its function head from text
        outside all functions, and only the latter may be due to a macro.
        """
        found = frozenset(self._strays(tree))
        if not tree.root_node.has_error:
            return found
        lasting = self._rules.lasting | self._rules.firm
        return frozenset(fault for fault in found if fault.kind.partition(":")[0] in lasting)

    def _strays(self, tree: Tree, spans: Sequence[tuple[int, int]] | None = None) -> Iterator[Fault]:
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

    def reserved_names(self, tree: Tree, text: bytes, spans: Sequence[tuple[int, int]]) -> frozenset[Fault]:
        """Return the names in some byte ranges that are reserved words, such as ``public`` in ``x public;``."""
        found = set()
        for begin, stop in spans:
            for word in self._rules.words.finditer(text, begin, stop):
                node = tree.root_node.descendant_for_byte_range(*word.span())
                if node is not None and _is_name(node, word) and not self._quoted(node):
                    found.add(Fault("RESERVED", *word.span()))
        return frozenset(found)

    def line_ends(self, tree: Tree, text: bytes, spans: Sequence[tuple[int, int]] | None = None) -> frozenset[Fault]:
        """Return the line ends near some byte ranges, or everywhere, that are semicolons where none may stand."""
        return line_end_faults(tree, text, spans) if self._rules.line_ends else frozenset()

    def repeated(self, tree: Tree, text: bytes, spans: Sequence[tuple[int, int]]) -> frozenset[Fault]:
        """Return the names that are declared in some byte ranges and somewhere else as well."""
        finder = _repeated(self._language)
        return faults_of(finder.repeated(tree, text, spans, self._elsewhere)) if finder is not None else frozenset()

    def repeated_anew(
        self,
        found: frozenset[Fault],
        text: bytes,
        spans: Sequence[tuple[int, int]],
        before: Tree,
        old: bytes,
        old_spans: Sequence[tuple[int, int]],
    ) -> frozenset[Fault]:
        """Return the names ``found`` at fills (``spans``) that were not declared twice in the text ``old``.

        ``before`` is that text's tree, ``old_spans`` are its bytes that the fills replaced.
        """
        return frozenset(
            fault
            for fault in found
            if all(
                old[known.start : known.end] != text[fault.start : fault.end]
                for known in self.repeated(before, old, [_old_place(fault, spans, old_spans)])
            )
        )

    def _quoted(self, node: Node) -> bool:
        return node.parent is not None and node.parent.type in self._rules.quoting


def placement_in(language: Language, elsewhere: Tree | None) -> Placement | None:
    """Return the placement rules for a document; None if its language has none."""
    known = language.rules is not None or language.declarations is not None
    return Placement(language, elsewhere) if known else None


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


def _old_place(fault: Fault, spans: Sequence[tuple[int, int]], old_spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Where a fault was before some ranges were replaced by ``spans``; for a fault in one of these, its old range."""
    shift = 0
    for (start, end), old in zip(spans, old_spans, strict=True):
        if fault.end <= start:
            break
        if fault.start < end:
            return old
        shift = old[1] - end
    return fault.start + shift, fault.end + shift
