"""Regular expressions of JavaScript: patterns that the grammar accepts and compilers do not.

Browsers accept much that the specification does not (a lone brace, any escape). The remaining faults are unmatched
groups, repetitions of nothing, and ranges and bounds that run backwards.
"""

import re

from tree_sitter import Node

_ESCAPE = r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|c[A-Za-z]|[0-3]?[0-7]{1,2}|.)"
_CODE_POINT = r"\\u\{[0-9a-fA-F]+\}|"
_PARTS = r"""
(?P<class>\[\^?(?:[^\]\\]|\\.)*\])
|(?P<opener>\((?:\?(?:[:=!]|<[=!]|<[\w$]+>|(?=[ims-])[ims]*(?:-[ims]*)?:))?)
|(?P<closer>\))
|(?P<repeated>(?:[*+?]|\{(?P<least>\d+)(?:,(?P<most>\d*))?\})\??)
|(?P<other>%s%s|[^\\])
"""
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "b": 8}
_SETS = frozenset("dDsSwWpPk")
# Parts that no repetition may follow, besides an opening parenthesis and another repetition.
_NOTHING = frozenset({"|", "^", "$", "\\b", "\\B"})


def _pattern(code_points: str) -> re.Pattern[str]:
    return re.compile(_PARTS % (code_points, _ESCAPE), re.VERBOSE | re.DOTALL)


def _member(code_points: str) -> re.Pattern[str]:
    return re.compile(f"{code_points}{_ESCAPE}|.", re.DOTALL)


# By whether the flag "u" is set.
_PATTERNS = {False: _pattern(""), True: _pattern(_CODE_POINT)}
_MEMBERS = {False: _member(""), True: _member(_CODE_POINT)}


def well_formed(node: Node) -> bool:
    """Whether compilers accept a literal's pattern; one with the flag "v" is not checked."""
    flags = node.parent.child_by_field_name("flags") if node.parent is not None else None
    letters = (flags.text or b"").decode() if flags is not None else ""
    return "v" in letters or _is_pattern((node.text or b"").decode(errors="replace"), "u" in letters)


def _is_pattern(text: str, by_code_points: bool) -> bool:
    depth, place, repeatable = 0, 0, False
    while place < len(text):
        part = _PATTERNS[by_code_points].match(text, place)
        if part is None or (part["opener"] and text.startswith("?", part.end())):
            return False
        depth += bool(part["opener"]) - bool(part["closer"])
        if depth < 0 or (part["repeated"] and not (repeatable and _rises(part["least"], part["most"]))):
            return False
        if part["class"] and not _runs_forward(part["class"], by_code_points):
            return False
        repeatable = not (part["opener"] or part["repeated"] or part["other"] in _NOTHING)
        place = part.end()
    return depth == 0


def _rises(least: str | None, most: str | None) -> bool:
    """Whether a number is at most another one; either may have more digits than Python reads."""
    first, last = ((len(digits), digits) for digits in ((least or "").lstrip("0"), (most or "").lstrip("0")))
    return not (least and most) or first <= last


def _runs_forward(text: str, by_code_points: bool) -> bool:
    """Whether the ranges of a class in brackets are in ascending order."""
    members = _MEMBERS[by_code_points].findall(text[1:-1].removeprefix("^"))
    place = 0
    while place + 2 < len(members):
        if members[place + 1] != "-":
            place += 1
            continue
        first, last = _units(members[place], by_code_points), _units(members[place + 2], by_code_points)
        if first and last and first[-1] > last[0]:
            return False
        place += 3
    return True


def _units(member: str, by_code_points: bool) -> list[int]:
    """The numbers by which a member of a class is compared; empty for a member that is a set of characters."""
    if len(member) < 2 or member[0] != "\\":
        size = 4 if by_code_points else 2
        code = member.encode("utf-32-le" if by_code_points else "utf-16-le", "surrogatepass")
        return [int.from_bytes(code[place : place + size], "little") for place in range(0, len(code), size)]
    letter, digits = member[1], member[2:].strip("{}")
    if letter in "xu" and digits:
        return [int(digits, 16)]
    if letter == "c" and digits:
        return [ord(digits) % 32]
    if letter in "01234567":
        return [int(member[1:], 8)]
    return [] if letter in _SETS else [_CONTROLS.get(letter, ord(letter))]
