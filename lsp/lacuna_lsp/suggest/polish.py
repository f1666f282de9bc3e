"""Adapts the model's text for the user.

``clean`` uses only the text and the file's style; its result is cached. ``fit`` uses the text around the cursor at
display time, which may differ from the text that the model read if the user has typed since.
"""

import re
from dataclasses import dataclass

from lacuna_model.core.stopping import StopRule

_LINE_END = re.compile(r"\r\n|\r|\n")
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_WORD = re.compile(r"\w")
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
    """Returns a fill for the cache: adapted, at most ``max_lines`` lines, no trailing blanks; "" if none is left."""
    lines = adapt(fill, habits).split(habits.newline)[:max_lines]
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or _repeats(lines):
        return ""
    return habits.newline.join([*lines[:-1], lines[-1].rstrip()])


def fit(text: str, before: str, after: str, typed: str = "") -> str:
    """Returns a text for the place between ``before`` and ``after``, ended by the engine's own rule.

    ``typed`` is the end of ``before`` that belongs to the suggestion: the rule is that of the place where it begins, so
    that typing or accepting a part of it does not cut the rest. "" if it says nothing there: it is blank, or its first
    line repeats code of the line above.
    """
    rule = StopRule.between(before[: len(before) - len(typed)], after)
    ended = (rule.end(typed + text, final=True) or "")[len(typed) :].rstrip()
    *_, above, head = ["", *before.split("\n")[-2:]]
    line = (head + ended.split("\n", 1)[0]).strip()
    return "" if not ended or (line == above.strip() and _WORD.search(line)) else ended


def _indented(line: str, unit: str) -> str:
    """Converts the indentation of a line to the file's tabs or spaces."""
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    if unit == "\t" and indent and "\t" not in indent:
        return "\t" * max(1, len(indent) // 4) + line[len(indent) :]
    return indent.replace("\t", unit) + line[len(indent) :] if unit.strip("\t") else line


def _repeats(lines: list[str]) -> bool:
    """Whether a line repeats so often in a row that the model is stuck."""
    return any(line.strip() and lines[at : at + _MAX_REPEATS] == [line] * _MAX_REPEATS for at, line in enumerate(lines))
