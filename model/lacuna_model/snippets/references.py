"""Finds the names that the code around a cursor refers to, nearest first."""

import re
from dataclasses import dataclass, replace

# Rows above and below the cursor that are searched; nearer names have more weight.
ROWS_ABOVE = 50
ROWS_BELOW = 15
_HALF_WEIGHT_ROWS = 16
# Names in strings and comments are no references.
_HASH_TEXT = re.compile(r"(\"{3}|'{3}).*?(\1|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*", re.DOTALL)
_SLASH_TEXT = re.compile(r"/\*.*?(\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|//[^\n]*", re.DOTALL)
# A name that a keyword defines here is not a use.
_NAME = re.compile(
    r"(\b(?:def|class|function|func|fn)\s+)?(?:([^\W\d]\w*)\s*(?:\.|::|->)\s*)?([^\W\d]\w+)"
    r"(\s*\(|\s*(?:\.|::)(?!\s*\w))?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name in ``row`` (from 0).

    ``qualifier`` is the name before its dot, "" for none. ``weight`` in 0..1 falls with the distance from the cursor.
    ``telling``: the name looks like that of a definition, since it is called or spelt like a type. ``opened``: behind
    it stands a dot and no name yet.
    """

    name: str
    qualifier: str
    row: int
    weight: float
    telling: bool
    opened: bool = False


def references(lines: list[str], row: int, language: str) -> list[Reference]:
    """The names used around ``row``, each once at its nearest use, the nearest first.

    Above the cursor, the block around it is searched, from its first line at the left margin.
    """
    first, last = _extent(lines, row)
    code = without_texts("\n".join(lines[first:last]), language).split("\n")
    found: dict[tuple[str, str], Reference] = {}
    for number in (*range(row, first - 1, -1), *range(row + 1, last)):
        weight = 0.5 ** (abs(row - number) * (1 if number <= row else 2) / _HALF_WEIGHT_ROWS)
        for match in _NAME.finditer(code[number - first]):
            defined, qualifier, name, call = match.groups(default="")
            if defined:
                continue
            telling, opened = call.endswith("(") or name[0].isupper(), call.endswith((".", ":"))
            _note(found, Reference(name, qualifier, number, weight, telling, opened))
            if qualifier:
                _note(found, Reference(qualifier, "", number, weight, qualifier[0].isupper()))
    return list(found.values())


def without_texts(text: str, language: str) -> str:
    """The text without strings and comments; every row keeps its number."""
    pattern = _HASH_TEXT if language == "python" else _SLASH_TEXT
    return pattern.sub(lambda match: "\n" * match[0].count("\n"), text)


def _note(found: dict[tuple[str, str], Reference], use: Reference) -> None:
    """Keep the nearest use of a name; it is telling if any of its uses is, and opened likewise."""
    known = found.setdefault((use.qualifier, use.name), use)
    telling, opened = known.telling or use.telling, known.opened or use.opened
    found[use.qualifier, use.name] = replace(known, telling=telling, opened=opened)


def _extent(lines: list[str], row: int) -> tuple[int, int]:
    """The rows of the block around ``row``: the first, and the one after the last."""
    first = row
    while first > max(0, row - ROWS_ABOVE) and (first == row or not _begins_block(lines[first])):
        first -= 1
    last = row + 1
    while last < min(len(lines), row + ROWS_BELOW + 1) and not _begins_block(lines[last]):
        last += 1
    return first, last


def _begins_block(line: str) -> bool:
    return bool(line) and not line[0].isspace() and line[0] not in ")]}#/*@"
