"""Says which variable a name is: tree-sitter's tree of a text, read by the scope rules of its language.

Only the occurrences of the wanted names are looked at. Several names may be taken for one: after a rename, some places
of a variable have its new name and some its old one.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from tree_sitter import Node

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.next_edit.changes import Kind, TokenizedText
from lacuna_model.next_edit.scope_rules import RULES, ScopeRules

MAX_OCCURRENCES = 20_000  # a name with more of them is not looked into
WAY_NS = 60_000  # nominal nanoseconds: the work of an occurrence
SELVES = frozenset(("self", "cls", "this", "$this"))
# What belongs to the function around it.
_BODIES = frozenset(("block", "statement_block", "compound_statement", "function_declarator", "constructor_body"))
_ASSIGNED = frozenset(("assignment.left", "assignment_expression.left"))
_CONSTRUCTORS = ("__init__", "constructor", "__construct", "initialize")
_TEXTS = ("string", "char", "heredoc", "jsx_text", "regex")
# The children that lead from the root of the tree to a node. A rename leaves it as it is.
Home = tuple[int, ...]
FILE: Home = ()
Role = Literal["variable", "member", "keyword", "tag", "string", "comment", "other"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place.

    ``home`` is the scope that declares a variable, ``FILE`` for one of the whole file or of none; ``number`` counts
    variables of one name in one scope. ``around`` are the scopes around it. It ``declares`` the variable, as one of the
    parameters of the function ``parameter_of``. ``owner`` is the class of a member of ``self``, ``called`` the function
    whose parameter a keyword names. ``shorthand``: the name is also a key.
    """

    role: Role
    home: Home = FILE
    number: int = 0
    around: frozenset[Home] = frozenset()
    declares: bool = False
    parameter_of: str = ""
    owner: str = ""
    called: str = ""
    shorthand: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it is a variable of a part of the file."""
        return self.role == "variable" and self.home != FILE

    @property
    def kind(self) -> Kind:
        """What it stands in."""
        return self.role if self.role == "string" or self.role == "comment" else "code"


class _Around(NamedTuple):
    """A node around a name, the place in it that leads to the name, as the rules write it, and its ``home``."""

    node: Node
    place: str
    home: Home


class _Way(NamedTuple):
    """A name's leaf, and the nodes around it, the innermost first."""

    leaf: Node
    around: list[_Around]

    def inside(self, number: int) -> Node:
        """The node by which that of a number leads to the name."""
        return self.around[number - 1].node if number else self.leaf


class _Declared(NamedTuple):
    """A declaration: the byte from which on it holds, that of its name, and the function that it is a parameter of."""

    since: int
    at: int
    parameter_of: str


@dataclass(slots=True)
class _Declarations:
    """What the occurrences of the names declare: by scope, and the classes that have a member of the name."""

    scopes: dict[Home, list[_Declared]] = field(default_factory=dict)
    passing: set[Home] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)


class Scopes:
    """The occurrences of some names in a text, which are taken for one name."""

    def __init__(self, tokens: TokenizedText, root: Node, rules: ScopeRules, names: Sequence[str]) -> None:
        self._tokens, self._root, self._rules, self._names = tokens, root, rules, names
        self._known: dict[int, Occurrence] = {}

    def at(self, index: int) -> Occurrence:
        """Returns the occurrence at the token of an index; the role ``other`` where nothing is known of it."""
        if index not in self._known:
            way = self._ways.get(index)
            self._known[index] = self._occurrence(way) if way else Occurrence("other")
        return self._known[index]

    def declares(self, home: Home, indexes: Iterable[int]) -> bool:
        """Whether one of some tokens declares its name in a scope."""
        return any(one.declares and one.home == home for one in map(self.at, indexes))

    def declares_member(self, owner: str) -> bool:
        """Whether a class declares a member with one of the names."""
        return owner in self._declarations.owners

    @cached_property
    def _ways(self) -> dict[int, _Way]:
        """The way to each occurrence, by the index of its token."""
        indexes = sorted(index for name in self._names for index in self._tokens.places.get(name, ()))
        if len(indexes) > MAX_OCCURRENCES:
            return {}
        work.spend(len(indexes) * WAY_NS)
        offsets = self._tokens.byte_offsets(indexes)
        return {index: _way(self._root, offset) for index, offset in zip(indexes, offsets, strict=True)}

    @cached_property
    def _declarations(self) -> _Declarations:
        found, rules = _Declarations(), self._rules
        for way in self._ways.values():
            if any(one.node.type in rules.passes for one in way.around):
                found.passing.add(self._home(way, functions=True))
            elif owner := self._owner(way):
                member = self._member(way)
                behind = way.around[member[0] + 1 :] if member is not None else []
                if not behind or behind[0].place in _ASSIGNED:
                    found.owners.add(owner)
            elif (at := self._declaring(way)) is not None:
                home = self._declared_in(way, at)
                # A loop's variable holds in its body.
                whole = way.inside(at) if way.around[at].node.type in rules.scopes else way.around[at].node
                own = _Declared(whole.end_byte, way.leaf.start_byte, _parameter_of(way, home))
                found.scopes.setdefault(home, []).append(own)
                if name := self._class_name(way, home):
                    found.owners.add(name)
        return found

    def _is_name(self, way: _Way) -> bool:
        parents = [f"{one.node.type}." for one in way.around[:1]]
        return way.leaf.type in self._rules.names or not self._rules.names.isdisjoint(parents)

    def _is_keyword(self, way: _Way) -> bool:
        leaf, keywords, place = way.leaf, self._rules.keywords, _place(way)
        if place not in keywords:
            return leaf.type in keywords
        return not place.endswith(".") or (leaf.next_sibling is not None and leaf.next_sibling.type == "=")

    def _occurrence(self, way: _Way) -> Occurrence:
        rules, place = self._rules, _place(way)
        around = frozenset(one.home for one in way.around if one.node.type in rules.scopes)
        if self._member(way) or self._up(way, rules.fields) is not None:
            return Occurrence("member", around=around, owner=self._owner(way), declares=bool(self._owner(way)))
        if any(map(_is_aliased, way.around)):
            return Occurrence("member", around=around)  # of another module
        if self._is_keyword(way):
            return Occurrence("keyword", around=around, called=_called(way))
        if place in rules.tags and (way.leaf.text or b"")[:1].islower():
            return Occurrence("tag", around=around)
        if not self._is_name(way):
            return Occurrence("member" if way.leaf.type in rules.keys else _text_role(way), around=around)
        home, number, parameter_of = self._resolved(way)
        if owner := self._class_name(way, home):
            return Occurrence("member", home, around=around, owner=owner, declares=True)
        declares = self._declaring(way) is not None
        short = way.leaf.type in rules.shorthand or place in rules.shorthand
        return Occurrence("variable", home, number, around, declares, parameter_of, shorthand=short)

    def _resolved(self, way: _Way) -> tuple[Home, int, str]:
        """Returns the scope of a variable, its number there, and the function that it is a parameter of."""
        known, at = self._declarations, way.leaf.start_byte
        declaring = self._declaring(way)
        homes = self._seen(way) if declaring is None else [self._declared_in(way, declaring), *self._seen(way)]
        for home in homes:
            own = known.scopes.get(home, ())
            ordered = self._rules.ordered and not self._class_name(way, home)
            before = [one for one in own if one.at == at or one.since <= at]
            if home in known.passing or not (before if ordered else own):
                continue
            number = len({one.since for one in before}) if self._rules.renews else 0
            return home, number, next((one.parameter_of for one in own if one.parameter_of), "")
        return FILE, 0, ""

    def _levels(self, way: _Way) -> Iterator[_Around]:
        """Yields the nodes that are scopes around a name, the innermost first."""
        rules, skip = self._rules, False
        for number, one in enumerate(way.around[:-1]):
            kind = one.node.type
            skip = skip or one.place in rules.outside
            if kind not in rules.scopes or (kind in _BODIES and self._is_body(way, number)):
                continue
            if not skip:
                yield one
            skip = False

    def _home(self, way: _Way, *, functions: bool) -> Home:
        """Returns the innermost scope around a name; ``functions``: of these alone."""
        levels = (one for one in self._levels(way) if not functions or one.node.type in self._rules.functions)
        return next((one.home for one in levels), FILE)

    def _is_body(self, way: _Way, number: int) -> bool:
        """Whether a node is the body or the head of a function, and no scope of its own."""
        above = (one for one in way.around[number + 1 :] if one.place not in self._rules.through or not one.home)
        return next(above).node.type in self._rules.functions

    def _seen(self, way: _Way) -> Iterator[Home]:
        """Yields the scopes whose variables can be named at a place."""
        crossed = False
        for one in self._levels(way):
            if not (crossed and one.node.type in self._rules.closed):
                yield one.home
            crossed = crossed or one.node.type in self._rules.functions

    def _up(self, way: _Way, wanted: Collection[str]) -> int | None:
        """Returns how far above a name the first of the wanted places is; None if others are before it."""
        for number, one in enumerate(way.around):
            if one.place in wanted:
                return number
            if one.place not in self._rules.through:
                return None
        return None

    def _declaring(self, way: _Way) -> int | None:
        """Returns the number of the node that declares a name here; None if none does."""
        number = self._up(way, self._rules.declares) if self._is_name(way) else None
        if number is None or _is_aliased(way.around[number]):
            return None
        dotted = (one.node for one in way.around[:number] if one.node.type == "dotted_name")
        return None if any(node.named_child_count > 1 for node in dotted) else number

    def _declared_in(self, way: _Way, at: int) -> Home:
        hoisted = any(one.node.type in self._rules.hoisted for one in way.around[at : at + 2] if one.home)
        return self._home(way, functions=hoisted)

    def _member(self, way: _Way) -> tuple[int, Node | None] | None:
        """Returns how far above a name the member access is, and what stands before its dot; None if it is none."""
        number = self._up(way, self._rules.members)
        if number is None:
            return None
        node, place, _ = way.around[number]
        if before := self._rules.members[place]:
            receiver = node.child_by_field_name(before)
            bare = receiver is None and place.startswith(("call.", "method_invocation."))
            return None if bare else (number, receiver or node.child(0))
        is_first = place.endswith(".") and node.named_child(0) == way.inside(number)
        return None if is_first and place != "field_initializer." else (number, None)

    def _owner(self, way: _Way) -> str:
        """Returns the class of a member: one that it declares, or is named before the dot; "" for those of others."""
        found = self._member(way)
        before = (found[1].text or b"").decode() if found is not None and found[1] is not None else ""
        if before[:1].isupper() and before.isidentifier():
            return before
        if before not in SELVES and self._up(way, self._rules.fields) is None:
            return ""
        return next((_name(one) for one in way.around if one.node.type in self._rules.classes), "")

    def _class_name(self, way: _Way, home: Home) -> str:
        """Returns the name of the class that a scope is; "" if it is none."""
        classes = (one for one in way.around if one.home == home != FILE and one.node.type in self._rules.classes)
        return next((_name(one) for one in classes), "")


class ParsedText:
    """A text whose scopes are asked for, which is parsed once."""

    def __init__(self, tokens: TokenizedText, language: Language | None) -> None:
        self._tokens = tokens
        self._language = language if language is not None and language.name in RULES else None
        self._known: dict[tuple[str, ...], Scopes] = {}

    def scopes(self, names: tuple[str, ...]) -> Scopes | None:
        """Returns the scopes of some names; None for a language without rules, and where no parse ends."""
        if self._language is None or self._root is None:
            return None
        if names not in self._known:
            self._known[names] = Scopes(self._tokens, self._root, RULES[self._language.name], names)
        return self._known[names]

    @cached_property
    def _root(self) -> Node | None:
        try:
            return self._language.parser().parse(self._tokens.text.encode()).root_node if self._language else None
        except UnparsableError:
            return None


def _way(root: Node, offset: int) -> _Way:
    """Returns the way to the leaf at a byte."""
    cursor, node, around, home = root.walk(), root, list[_Around](), FILE
    while (index := cursor.goto_first_child_for_byte(offset)) is not None:
        child = cursor.node
        if child is None or not child.start_byte <= offset < child.end_byte:
            break
        around.append(_Around(node, f"{node.type}.{cursor.field_name or ''}", home))
        node, home = child, (*home, index)
    return _Way(node, around[::-1])


def _place(way: _Way) -> str:
    return way.around[0].place if way.around else ""


def _is_aliased(one: _Around) -> bool:
    """Whether a name is that of another module, which has another one here."""
    return one.place.endswith(".name") and one.node.child_by_field_name("alias") is not None


def _text_role(way: _Way) -> Role:
    for kind in (node.type for node in (way.leaf, *(one.node for one in way.around)) if node.is_named):
        if "comment" in kind:
            return "comment"
        if any(word in kind for word in _TEXTS):
            return "string"
    return "other"


def _name(one: _Around) -> str:
    """Returns what identifies a class: its name, or its place."""
    node = one.node.child_by_field_name("name") or one.node.child_by_field_name("type")
    text = (node.text or b"").decode() if node is not None else ""
    return text.partition("<")[0].strip() or f"class {one.home}"


def _parameter_of(way: _Way, home: Home) -> str:
    """Returns the name of the function that a name is a parameter of, that of its class for a constructor."""
    number = next((number for number, one in enumerate(way.around) if one.home == home), -1)
    if home == FILE or number < 0:
        return ""
    function, place, _ = way.around[number]
    if "parameter" not in place.partition(".")[2] and "parameter" not in way.inside(number).type:
        return ""
    outer = way.around[number + 1 :]
    name = function.child_by_field_name("name") or outer[0].node.child_by_field_name("name")
    called = (name.text or b"").decode() if name is not None else ""
    if called not in _CONSTRUCTORS:
        return called
    return next((_name(one) for one in outer if "class" in one.node.type), "")


def _called(way: _Way) -> str:
    """Returns the name of the function, the class or the component that a keyword argument is given to."""
    given = way.around[:2][-1].node
    callee = given.prev_named_sibling if "argument" in given.type else given.child_by_field_name("name")
    if callee is not None and callee.text == b"new":
        callee = callee.prev_named_sibling  # the class of Ruby's ``User.new``
    text = (callee.text or b"").decode() if callee is not None else ""
    return text.partition("<")[0].rpartition(".")[2]
