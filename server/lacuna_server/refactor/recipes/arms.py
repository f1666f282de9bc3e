"""The recipe ``arms``: adds the missing arms to a match or switch over an enum.

The enum's definition, in any of the files, decides which arms are missing. The model fills their bodies.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec
from tree_sitter import Node

from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.recipes.annotations import ancestors, text
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


@cache
def syntaxes() -> dict[str, ArmSyntax]:
    """Returns the syntax of every language that the recipe knows."""
    text = (resources.files(__package__) / "arms.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), type=dict[str, ArmSyntax])


def find(sources: Sequence[Source], settings: Mapping[str, str]) -> Iterator[Found]:
    """Yields a rewrite for every match or switch that has arms for some members of a known enum and no default arm."""
    enums: dict[str, list[list[str]]] = {}
    for source in sources:
        enums.setdefault(source.language.name, []).extend(_enums(source))
    for source in sources:
        syntax = syntaxes()[source.language.name]
        for holder, arms, labels in _switches(source, syntax):
            if any(re.match(syntax.otherwise, text(arm)) for arm in arms):
                continue
            named = {token for label in labels for token in TOKEN.findall(text(label)) if not BINDING.fullmatch(token)}
            values = next((values for values in enums[source.language.name] if named and named <= set(values)), [])
            missing = [value for value in values if value not in named]
            if missing and not source.lead(arms[0].start_byte).strip():
                yield source, _arms(source, syntax, holder, arms, missing)


def _enums(source: Source) -> list[list[str]]:
    """Returns the values of every enum of a file, written as in an arm."""
    syntax = syntaxes()[source.language.name]
    found: dict[str, list[str]] = {}
    for match in source.query(syntax.enums):
        enum = text(match["enum"][0])
        found.setdefault(enum, []).extend(
            syntax.value.replace("ENUM", enum).replace("MEMBER", text(member)) for member in match["member"]
        )
    return list(found.values())


def _switches(source: Source, syntax: ArmSyntax) -> Iterator[tuple[Node, list[Node], list[Node]]]:
    """Yields the node that contains the arms of each match or switch, its arms, and their labels."""
    labelled: dict[int, list[dict[str, list[Node]]]] = {}
    for pair in source.query(syntax.labels):
        labelled.setdefault(next(ancestors(pair["arm"][0])).id, []).append(pair)
    for match in source.query(syntax.arms):
        holder = match["arms"][0]
        if own := labelled.get(holder.id, []):
            yield holder, [pair["arm"][0] for pair in own], [pair["label"][0] for pair in own]


def _arms(source: Source, syntax: ArmSyntax, holder: Node, arms: Sequence[Node], missing: Sequence[str]) -> Rewrite:
    last = arms[-1]
    indent = source.indent_at(arms[0].start_byte)
    at = source.behind_comment(last.end_byte)
    comma = "," if text(last)[-1:] not in (",", "}") and syntax.arm.endswith(",") else ""
    ended = source.newline + indent + source.indent_unit + BREAK
    needed = ended if syntax.arm.endswith(BREAK) and not _leaves(last) else ""
    parts: list[Part] = [comma + source.slice(last.end_byte, at) + needed]
    for value in missing:
        arm = "\n" + syntax.arm.replace("VALUE", value)
        for part in parse_parts(arm.replace("\t", source.indent_unit).replace("\n", source.newline + indent)):
            parts.append(part)
    return Rewrite(last.end_byte, at, tuple(parts), f"arms for {', '.join(missing)}")


def _leaves(arm: Node) -> bool:
    """Returns whether the last statement of an arm or block leaves it."""
    last = next((child for child in reversed(arm.named_children) if child.type != "comment"), None)
    return last is not None and (last.type in LEAVING or (last.type in BLOCKS and _leaves(last)))
