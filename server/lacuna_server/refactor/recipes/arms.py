"""The recipe ``arms``: adds the missing arms to a match or switch over an enum.

The enum's definition, in any of the files, decides which arms are missing. The model fills their bodies.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TypeAlias

import msgspec
from tree_sitter import Node

from lacuna_server.refactor.places.source import Source, ancestors
from lacuna_server.refactor.rewriting.refactoring import Found
from lacuna_server.refactor.rewriting.rewrite import Part, Rewrite, parse_parts

TOKEN = re.compile(r"[\w.:]+")
# What ends an arm that would go on with the next one, and what may hold it.
BREAK = "break;"
LEAVING = frozenset(f"{kind}_statement" for kind in ("break", "return", "throw", "continue", "goto"))
BLOCKS = frozenset(("compound_statement", "statement_block"))
BINDING = re.compile(r"_|[a-z]\w*")


class ArmSyntax(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The syntax of enums and arms in a language; ``arms.toml`` explains the keys."""

    enums: str
    arms: str
    labels: str
    value: str
    otherwise: str
    arm: str
    data: dict[str, str] = {}
    own: str = ""


# An enum's name, and its members with what follows each in the head of an arm.
Enum: TypeAlias = tuple[str, dict[str, str]]


@cache
def syntaxes() -> dict[str, ArmSyntax]:
    """Returns the syntax of every language that the recipe knows."""
    return msgspec.toml.decode((resources.files(__package__) / "arms.toml").read_bytes(), type=dict[str, ArmSyntax])


def text(node: Node) -> str:
    """Returns the text of a node."""
    return (node.text or b"").decode()


def find(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields a rewrite for every match or switch that has arms for some members of a known enum and no default arm."""
    enums: dict[str, list[Enum]] = {}
    for source in sources:
        enums.setdefault(source.language.name, []).extend(_enums(source))
    for source in sources:
        syntax = syntaxes()[source.language.name]
        for holder, arms, labels in _switches(source, syntax):
            if any(re.match(syntax.otherwise, text(arm)) for arm in arms):
                continue
            tokens = {token.rstrip(":.") for label in labels for token in TOKEN.findall(text(label))}
            named = {token for token in tokens if token and not BINDING.fullmatch(token)}
            members = _members(enums[source.language.name], syntax, holder, named)
            missing = {member: data for member, data in members.items() if member not in named}
            if missing and not source.lead(arms[0].start_byte).strip():
                yield source, [_arms(source, syntax, arms, missing)]


def _enums(source: Source) -> list[Enum]:
    """Returns the enums of a file."""
    syntax = syntaxes()[source.language.name]
    found: dict[str, dict[str, str]] = {}
    for match in source.query(syntax.enums):
        enum = text(match["enum"][0])
        data = match.get("data", ())
        for member in match["member"]:
            found.setdefault(enum, {})[text(member)] = _data(syntax, data[0]) if data else ""
    return list(found.items())


def _data(syntax: ArmSyntax, data: Node) -> str:
    """Returns what takes a member's data in the head of an arm."""
    fields = [text(name) for child in data.named_children if (name := child.child_by_field_name("name")) is not None]
    return syntax.data[data.type].replace("FIELDS", ", ".join(fields) or "..")


def _members(enums: Sequence[Enum], syntax: ArmSyntax, holder: Node, named: set[str]) -> dict[str, str]:
    """Returns the members of the enum of which the named ones are, written as these are."""
    around = next((node for node in ancestors(holder) if node.type == syntax.own), None)
    kind = around.child_by_field_name("type") if around is not None else None
    own = re.split(r"\W", text(kind))[0] if kind is not None else ""
    for name, members in [*enums, *(("Self", members) for name, members in enums if name == own)]:
        value = syntax.value.replace("ENUM", name)
        written = {value.replace("MEMBER", member): data for member, data in members.items()}
        if named and named <= written.keys():
            return written
    return {}


def _switches(source: Source, syntax: ArmSyntax) -> Iterator[tuple[Node, list[Node], list[Node]]]:
    """Yields the node that contains the arms of each match or switch, its arms, and their labels."""
    labelled: dict[int, list[dict[str, list[Node]]]] = {}
    for pair in source.query(syntax.labels):
        labelled.setdefault(next(ancestors(pair["arm"][0])).id, []).append(pair)
    for match in source.query(syntax.arms):
        holder = match["arms"][0]
        if own := labelled.get(holder.id, []):
            yield holder, [pair["arm"][0] for pair in own], [pair["label"][0] for pair in own]


def _arms(source: Source, syntax: ArmSyntax, arms: Sequence[Node], missing: Mapping[str, str]) -> Rewrite:
    last = arms[-1]
    indent = source.indent_at(arms[0].start_byte)
    at = source.behind_comment(last.end_byte)
    comma = "," if text(last)[-1:] not in (",", "}") and syntax.arm.endswith(",") else ""
    ended = source.newline + indent + source.indent_unit + BREAK
    needed = ended if syntax.arm.endswith(BREAK) and not _leaves(last) else ""
    parts: list[Part] = [comma + source.slice(last.end_byte, at) + needed]
    for value, data in missing.items():
        arm = "\n" + syntax.arm.replace("VALUE", value + data)
        parts += parse_parts(arm.replace("\t", source.indent_unit).replace("\n", source.newline + indent))
    return Rewrite(last.end_byte, at, tuple(parts), f"arms for {', '.join(missing)}")


def _leaves(arm: Node) -> bool:
    """Returns whether the last statement of an arm or block leaves it."""
    last = next((child for child in reversed(arm.named_children) if child.type != "comment"), None)
    return last is not None and (last.type in LEAVING or (last.type in BLOCKS and _leaves(last)))
