"""Says which variable a name is: tree-sitter's tree of a text, read by the scope rules of its language.

Only the occurrences of the wanted names are looked at. Several names may be taken for one: after a rename, some places
of a variable have its new name and some its old one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from tree_sitter import Node

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.next_edit.scope_rules import RULES, ScopeRules
from lacuna_model.next_edit.tokens import Kind, TokenizedText

MAX_OCCURRENCES = 20_000  # a name with more of them is not looked into
WAY_NS = 60_000  # nominal nanoseconds: the work of an occurrence
SELVES = frozenset(("self", "cls", "this", "$this"))
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


class _Step(NamedTuple):
    """A node on the way from the root to a name, the field that leads to it, and its ``home``."""

    node: Node
    field: str
    home: Home


@dataclass(slots=True)
class _Declared:
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
            steps = self._steps.get(index)
            self._known[index] = self._occurrence(steps) if steps else Occurrence("other")
        return self._known[index]

    def declares(self, home: Home, indexes: Iterable[int]) -> bool:
        """Whether one of some tokens declares its name in a scope."""
        return any(one.declares and one.home == home for one in map(self.at, indexes))

    def declares_member(self, owner: str) -> bool:
        """Whether a class declares a member with one of the names."""
        return owner in self._declarations.owners

    @cached_property
    def _steps(self) -> dict[int, list[_Step]]:
        """The way to each occurrence, by the index of its token."""
        indexes = [index for name in self._names for index in self._tokens.places.get(name, ())]
        if len(indexes) > MAX_OCCURRENCES:
            return {}
        work.spend(len(indexes) * WAY_NS)
        offsets = self._tokens.byte_offsets(indexes)
        return {index: _way(self._root, offset) for index, offset in zip(indexes, offsets, strict=True)}

    @cached_property
    def _declarations(self) -> _Declarations:
        found = _Declarations()
        for steps in self._steps.values():
            self._note(steps, found)
        return found

    def _note(self, steps: Sequence[_Step], found: _Declarations) -> None:
        rules, keys = self._rules, _keys(steps)
        if any(steps[number - 1].node.type in rules.passes for number in range(1, len(steps))):
            found.passing.add(next(self._scopes(steps, functions=True), FILE))
            return
        if owner := self._owner(steps):
            member = self._member(steps, keys)
            behind = keys[member[0] + 1 :] if member is not None else []
            if not behind or behind[0] in _ASSIGNED:
                found.owners.add(owner)
            return
        at = self._declaring(steps, keys)
        if at is None:
            return
        home = self._declared_in(steps, at)
        whole = steps[at + 1 if steps[at].node.type in rules.scopes else at]  # a loop's variable holds in its body
        own = _Declared(whole.node.end_byte, steps[-1].node.start_byte, _parameter_of(steps, home))
        found.scopes.setdefault(home, []).append(own)
        if home != FILE and (name := self._class_name(steps, home)):
            found.owners.add(name)

    def _is_name(self, steps: Sequence[_Step]) -> bool:
        parent = steps[-2].node.type if len(steps) > 1 else ""
        return steps[-1].node.type in self._rules.names or f"{parent}." in self._rules.names

    def _is_keyword(self, steps: Sequence[_Step], keys: Sequence[str]) -> bool:
        leaf, keywords = steps[-1].node, self._rules.keywords
        if not keys or keys[0] not in keywords:
            return leaf.type in keywords
        return not keys[0].endswith(".") or (leaf.next_sibling is not None and leaf.next_sibling.type == "=")

    def _occurrence(self, steps: Sequence[_Step]) -> Occurrence:
        rules, keys = self._rules, _keys(steps)
        around = frozenset(step.home for step in steps if step.node.type in rules.scopes)
        if self._member(steps, keys) or self._field(steps, keys) is not None:
            return Occurrence("member", around=around, owner=self._owner(steps), declares=bool(self._owner(steps)))
        if any(key.endswith(".name") and _is_aliased(step) for key, step in zip(keys, steps[-2::-1], strict=False)):
            return Occurrence("member", around=around)  # of another module
        if self._is_keyword(steps, keys):
            return Occurrence("keyword", around=around, called=_called(steps))
        if keys and keys[0] in rules.tags and (steps[-1].node.text or b"")[:1].islower():
            return Occurrence("tag", around=around)
        if not self._is_name(steps):
            role = "member" if steps[-1].node.type in rules.keys else _text_role(steps)
            return Occurrence(role, around=around)
        home, number, parameter_of = self._resolved(steps, keys)
        if home != FILE and (owner := self._class_name(steps, home)):
            return Occurrence("member", home, around=around, owner=owner, declares=True)
        declares = self._declaring(steps, keys) is not None
        short = steps[-1].node.type in rules.shorthand or (bool(keys) and keys[0] in rules.shorthand)
        return Occurrence("variable", home, number, around, declares, parameter_of, shorthand=short)

    def _resolved(self, steps: Sequence[_Step], keys: Sequence[str]) -> tuple[Home, int, str]:
        """Returns the scope of a variable, its number there, and the function that it is a parameter of."""
        known, at = self._declarations, steps[-1].node.start_byte
        declaring = self._declaring(steps, keys)
        homes = self._seen(steps) if declaring is None else [self._declared_in(steps, declaring), *self._seen(steps)]
        for home in homes:
            own = known.scopes.get(home, ())
            ordered = self._rules.ordered and not self._class_name(steps, home)
            before = [one for one in own if one.at == at or one.since <= at]
            if home in known.passing or not (before if ordered else own):
                continue
            number = len({one.since for one in before}) if self._rules.renews else 0
            return home, number, next((one.parameter_of for one in own if one.parameter_of), "")
        return FILE, 0, ""

    def _scopes(self, steps: Sequence[_Step], *, functions: bool = False) -> Iterator[Home]:
        """Yields the scopes around a name, the innermost first; ``functions``: these alone."""
        for number in self._levels(steps):
            if not functions or steps[number].node.type in self._rules.functions:
                yield steps[number].home

    def _levels(self, steps: Sequence[_Step]) -> Iterator[int]:
        """Yields the indexes of the steps that are scopes around a name, the innermost first."""
        rules, skip = self._rules, False
        for number in range(len(steps) - 2, 0, -1):
            kind = steps[number].node.type
            skip = skip or f"{kind}.{steps[number + 1].field}" in rules.outside
            if kind not in rules.scopes or (kind in rules.bodies and self._is_body(steps, number)):
                continue
            if skip:
                skip = False
                continue
            yield number

    def _is_body(self, steps: Sequence[_Step], number: int) -> bool:
        """Whether a step is the body or the head of a function, and no scope of its own."""
        above = number - 1
        while above > 0 and f"{steps[above].node.type}.{steps[above + 1].field}" in self._rules.through:
            above -= 1
        return steps[above].node.type in self._rules.functions

    def _seen(self, steps: Sequence[_Step]) -> Iterator[Home]:
        """Yields the scopes whose variables can be named at a place."""
        crossed = False
        for number in self._levels(steps):
            kind = steps[number].node.type
            if not (crossed and kind in self._rules.closed):
                yield steps[number].home
            crossed = crossed or kind in self._rules.functions

    def _declaring(self, steps: Sequence[_Step], keys: Sequence[str]) -> int | None:
        """Returns the step of the node that declares a name here; None if none does."""
        if not self._is_name(steps):
            return None
        for number, key in enumerate(keys):
            node = steps[len(steps) - 2 - number].node
            if key in self._rules.declares:
                return None if key.endswith(".name") and _is_aliased(steps[-2 - number]) else len(steps) - 2 - number
            if key not in self._rules.through or (node.type == "dotted_name" and node.named_child_count > 1):
                return None
        return None

    def _declared_in(self, steps: Sequence[_Step], at: int) -> Home:
        hoisted = any(steps[number].node.type in self._rules.hoisted for number in (at, at - 1) if number > 0)
        return next(self._scopes(steps, functions=hoisted), FILE)

    def _member(self, steps: Sequence[_Step], keys: Sequence[str]) -> tuple[int, Node | None] | None:
        """Returns how far above a name the member access is, and what stands before its dot; None if it is none."""
        for number, key in enumerate(keys):
            if key in self._rules.members:
                node, before = steps[len(steps) - 2 - number].node, self._rules.members[key]
                if before:
                    receiver = node.child_by_field_name(before)
                    bare = receiver is None and key.startswith(("call.", "method_invocation."))
                    return None if bare else (number, receiver or node.child(0))
                first = node.named_child(0)
                is_first = key.endswith(".") and first is not None and first == steps[len(steps) - 1 - number].node
                return None if is_first and key != "field_initializer." else (number, None)
            if key not in self._rules.through:
                return None
        return None

    def _field(self, steps: Sequence[_Step], keys: Sequence[str]) -> int | None:
        """Returns how far above a name the node is that declares it as a member; None if none does."""
        for number, key in enumerate(keys):
            if key in self._rules.fields:
                return number
            if key not in self._rules.through:
                return None
        return None

    def _owner(self, steps: Sequence[_Step]) -> str:
        """Returns the class of a member: one that it declares, or is named before the dot; "" for those of others."""
        keys = _keys(steps)
        found = self._member(steps, keys)
        before = (found[1].text or b"").decode() if found is not None and found[1] is not None else ""
        if before[:1].isupper() and before.isidentifier():
            return before
        if before not in SELVES and self._field(steps, keys) is None:
            return ""
        return next((_name(step) for step in reversed(steps) if step.node.type in self._rules.classes), "")

    def _class_name(self, steps: Sequence[_Step], home: Home) -> str:
        """Returns the name of the class that a scope is; "" if it is none."""
        classes = (step for step in steps if step.home == home and step.node.type in self._rules.classes)
        return next((_name(step) for step in classes), "")


class ParsedText:
    """A text whose scopes are asked for, which is parsed once."""

    def __init__(self, tokens: TokenizedText, language: Language | None) -> None:
        self._tokens = tokens
        self._language = language if language is not None and language.name in RULES else None

    def scopes(self, names: Sequence[str]) -> Scopes | None:
        """Returns the scopes of some names; None for a language without rules, and where no parse ends."""
        if self._language is None or self._root is None:
            return None
        return Scopes(self._tokens, self._root, RULES[self._language.name], names)

    @cached_property
    def _root(self) -> Node | None:
        try:
            return self._language.parser().parse(self._tokens.text.encode()).root_node if self._language else None
        except UnparsableError:
            return None


def _way(root: Node, offset: int) -> list[_Step]:
    """Returns the nodes from the root to the leaf at a byte."""
    cursor, steps, home = root.walk(), [_Step(root, "", FILE)], FILE
    while (index := cursor.goto_first_child_for_byte(offset)) is not None:
        node = cursor.node
        if node is None or not node.start_byte <= offset < node.end_byte:
            break
        home = (*home, index)
        steps.append(_Step(node, cursor.field_name or "", home))
    return steps


def _keys(steps: Sequence[_Step]) -> list[str]:
    """Returns the places of a name in the nodes around it, as the rules write them, the innermost first."""
    return [f"{steps[number - 1].node.type}.{steps[number].field}" for number in range(len(steps) - 1, 0, -1)]


def _is_aliased(step: _Step) -> bool:
    return step.node.child_by_field_name("alias") is not None


def _text_role(steps: Sequence[_Step]) -> Role:
    for kind in (step.node.type for step in reversed(steps) if step.node.is_named):
        if "comment" in kind:
            return "comment"
        if any(word in kind for word in _TEXTS):
            return "string"
    return "other"


def _name(step: _Step) -> str:
    """Returns what identifies a class: its name, or its place."""
    node = step.node.child_by_field_name("name") or step.node.child_by_field_name("type")
    text = (node.text or b"").decode() if node is not None else ""
    return text.partition("<")[0].strip() or f"class {step.home}"


def _parameter_of(steps: Sequence[_Step], home: Home) -> str:
    """Returns the name of the function that a name is a parameter of, that of its class for a constructor."""
    place = next((number for number, step in enumerate(steps) if step.home == home and number), 0)
    if not place or place + 1 >= len(steps):
        return ""
    if "parameter" not in steps[place + 1].field and "parameter" not in steps[place + 1].node.type:
        return ""
    function, around = steps[place].node, steps[place - 1].node
    name = function.child_by_field_name("name") or around.child_by_field_name("name")
    called = (name.text or b"").decode() if name is not None else ""
    if called not in _CONSTRUCTORS:
        return called
    classes = (step for step in reversed(steps[:place]) if "class" in step.node.type)
    return next((_name(step) for step in classes), "")


def _called(steps: Sequence[_Step]) -> str:
    """Returns the name of the function, the class or the component that a keyword argument is given to."""
    given = steps[max(len(steps) - 3, 0)].node
    callee = given.prev_named_sibling if "argument" in given.type else given.child_by_field_name("name")
    if callee is not None and callee.text == b"new":
        callee = callee.prev_named_sibling  # the class of Ruby's ``User.new``
    text = (callee.text or b"").decode() if callee is not None else ""
    return text.partition("<")[0].rpartition(".")[2]
