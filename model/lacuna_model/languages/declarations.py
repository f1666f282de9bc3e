"""What declares a name in a language, and in which scopes a name may be declared but once, which no grammar tells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

CLASH = 2
Weight = Callable[[Node, Node], int]  # of a holder and the child of it that the name is in


class Role(NamedTuple):
    """How a kind of node declares a name.

    It does so in the first of some fields that it has, "" being its first child and "*" any. Names of different
    spaces never clash, nor do those whose ``signature``, some fields or kinds of children, differs. What declares for
    itself alone, ``within``, is its own scope. A declaration that ``renews`` a name may stand below another one. What
    counts in more than the scope around does so up to the next node of a kind (``until``).
    """

    fields: str = "name"
    space: str = "value"
    weight: int | Weight = CLASH
    signature: str = ""
    within: bool = False
    renews: Callable[[Node, Node], bool] = lambda _holder, _child: False
    until: str = ""


@dataclass(frozen=True)
class Declarations:
    """One language's declarations.

    ``names`` are the kinds of nodes that are names, ``roles`` what declares them, ``through`` the nodes that may lie
    between (with the field that leads on), ``scopes`` where declarations end. A scope of ``bodies`` is that of the
    ``owners`` around it. Where ``walls`` are given, names of inner scopes clash with those of outer ones up to there;
    if they are ``ordered``, only with those above them.
    """

    names: str
    roles: Mapping[str, Role]
    scopes: frozenset[str]
    through: Mapping[str, str] = field(default_factory=dict)
    bodies: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    walls: frozenset[str] = frozenset()
    ordered: bool = False


TYPE = Role(space="type")
KEY = Role("key", "key")
MEMBER = Role(space="member")
