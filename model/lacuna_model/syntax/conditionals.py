"""Conditional lines, as C has them: how many ``#if`` are open at a gap, and how many must be behind it."""

import re
from collections.abc import Sequence

_LINE = re.compile(rb"^[ \t]*#[ \t]*(if|endif)", re.MULTILINE)
_JOINT = re.compile(rb"\\\r?\n")
# What follows in the middle of a directive that takes up several lines.
_CONTINUED = re.compile(rb"[ \t]*\r?\n(?![ \t]*#)(?P<operator>[ \t]*(?:&&|\|\|))?[^\n]*\\\r?\n")


def count_open(text: bytes, before: int = 0) -> tuple[int, int]:
    """How many are open at the end of a text in front of which ``before`` are, and how many ends have no beginning."""
    lacking = 0
    for match in _LINE.finditer(text):
        if match.group(1) == b"if":
            before += 1
        elif before:
            before -= 1
        else:
            lacking += 1
    return before, lacking


def count_due(pieces: Sequence[bytes]) -> int:
    """How many must be open in front of these texts, between which gaps are taken to hold none."""
    return count_open(b"\n".join(pieces))[1]


def settling(count: int, due: int, newline: bytes) -> bytes:
    """The lines that bring the number of those that are open to what is due; each begins with a line break."""
    line = b"#endif" if count > due else b"#if x"
    return (newline + line) * abs(count - due)


def continued(text: bytes, after: bytes, due: int) -> bytes:
    """What makes the end of a text one of a directive's line, where the text behind goes on with a directive.

    ``due`` is how many conditions must be begun; "" where no directive goes on.
    """
    found, line = _CONTINUED.match(after), _JOINT.sub(b"", text).rpartition(b"\n")[2]
    if found is None or line.endswith(b"\\"):
        return b""
    if line.lstrip().startswith(b"#"):
        return b" \\"
    begun = b"#define x \\" if due <= 0 else b"#if x \\" if found["operator"] else b"#if \\"
    return b"\n" + begun if line.strip() else begun
