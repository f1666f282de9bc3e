"""Adapts the model's text for the user.

``clean`` uses only the text and the file's style; its result is cached. ``fit`` uses the text around the cursor at
display time, which may differ from the text that the model read if the user has typed since.
"""

import re
from dataclasses import dataclass

from lacuna_model.core.stopping import trim_overlap

_LINE_END = re.compile(r"\r\n|\r|\n")
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_BRACKETS = re.compile(r"[()\[\]{}]")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_MAX_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Habits:
    """The style of a file: its line ending, and one level of its indentation ("" if unknown)."""

    newline: str
    indent: str

    @classmethod
    def of(cls, text: str, newline: str) -> "Habits":
        """Detects a text's style: tabs if most indented lines use them, else the smallest indentation in spaces."""
        indents = [match[0] for match in _INDENT.finditer(text)]
        tabs = sum(indent[0] == "\t" for indent in indents)
        if 2 * tabs > len(indents):
            return cls(newline, "\t")
        widths = [len(indent) for indent in indents if set(indent) == {" "} and len(indent) > 1]
        return cls(newline, " " * min(widths, default=0))


def adapt(fill: str, habits: Habits) -> str:
    """Returns a fill with the file's line endings and indentation; its first line continues the line of the gap."""
    first, *rest = _LINE_END.split(fill)
    return habits.newline.join([first, *(_indented(line, habits.indent) for line in rest)])


def clean(fill: str, habits: Habits, *, max_lines: int) -> str:
    """Returns a fill for the cache: adapted, cut to whole lines, without trailing blanks; "" if nothing is left."""
    lines = adapt(fill, habits).split(habits.newline)
    if len(lines) > max_lines:
        lines = _whole(lines[:max_lines])
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or _repeats(lines):
        return ""
    return habits.newline.join([*lines[:-1], lines[-1].rstrip()])


def fit(fill: str, before: str, after: str, *, constrained: bool) -> str:
    """Returns a fill for the place between ``before`` and ``after``; "" if it repeats them or breaks the brackets.

    If the engine kept the file valid (``constrained``), its brackets are right; otherwise brackets are counted.
    """

    def broken(text: str) -> int:
        return len(balance(before + text + after))

    # A fill lacks its last line ending, which may be part of a repetition of the suffix.
    ended = fill + ("\r\n" if "\r\n" in after else "\n")
    trimmed = trim_overlap(fill, after) if (whole := trim_overlap(ended, after)) == ended else whole
    choices = [trimmed, fill]
    if not constrained:
        choices.append(_without_closers(fill, after))
    text = min(choices, key=broken)
    if not constrained and broken(text) > broken(""):
        return ""
    return "" if not text.strip() or _repeats_line(text, before) else text


def balance(text: str) -> str:
    """Returns the unmatched brackets of ``text``."""
    left: list[str] = []
    for bracket in _BRACKETS.findall(text):
        if left and left[-1] == _PAIRS.get(bracket):
            left.pop()
        else:
            left.append(bracket)
    return "".join(left)


def _without_closers(fill: str, after: str) -> str:
    """Returns a fill without the closing brackets at its end that follow the cursor already."""
    closers = fill[len(fill.rstrip(")]}")) :]
    shared = next((size for size in range(len(closers), 0, -1) if after.startswith(closers[-size:])), 0)
    return fill[: len(fill) - shared]


def _repeats_line(text: str, before: str) -> bool:
    """Whether a fill of one line only repeats the line above."""
    *_, above, head = ["", *before.split("\n")[-2:]]
    return "\n" not in text and (head + text).strip() == above.strip() != ""


def _indented(line: str, unit: str) -> str:
    """Converts the indentation of a line to the file's tabs or spaces."""
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    if unit == "\t" and indent and "\t" not in indent:
        return "\t" * max(1, len(indent) // 4) + line[len(indent) :]
    return indent.replace("\t", unit) + line[len(indent) :] if unit.strip("\t") else line


def _whole(lines: list[str]) -> list[str]:
    """Drops lines from the end until no bracket is left open."""
    while lines and any(bracket in "([{" for bracket in balance("\n".join(lines))):
        lines = lines[:-1]
    return lines


def _repeats(lines: list[str]) -> bool:
    """Whether a line repeats so often in a row that the model is stuck."""
    return any(line.strip() and lines[at : at + _MAX_REPEATS] == [line] * _MAX_REPEATS for at, line in enumerate(lines))
