"""Declarations: the nodes that declare names, and the scopes in which a name may be declared only once.

Grammars do not hold this information.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

CLASH = 2
Weight = Callable[[Node, Node], int]  # of a declaring node and its child that contains the name


class Role(NamedTuple):
    """How a kind of node declares a name.

    The name is in the first of ``fields`` that the node has; "" stands for its first child and "*" for any. Names clash
    only within one ``space`` and with the same ``signature`` (some fields or kinds of children), if their weights sum
    to at least ``CLASH``. A declaration ``within`` itself is its own scope. One that ``renews`` a name may follow
    another declaration of it. With ``until``, the scope is the next node around of that kind.
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

    ``names`` are the kinds of nodes that are names, ``roles`` the nodes that declare them, ``through`` the nodes that
    may lie between (with the field that leads to the name), ``scopes`` the nodes where declarations end. A scope of
    ``bodies`` is that of the ``owners`` around it. With ``walls``, names of inner scopes clash with those of outer
    scopes up to there; if they are ``ordered``, only with earlier ones.
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
