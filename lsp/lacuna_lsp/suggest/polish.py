"""What is done to the model's text before a user sees it: before it is kept, and for the place it is shown at.

``clean`` looks at the text and the file's habits, and what it answers is kept; ``fit`` looks at what stands around the
cursor now, which may be other text than the model saw when the user has typed into a suggestion meanwhile.
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
    """How a file is written: its line ending, and one level of its indentation ("": none seen)."""

    newline: str
    indent: str

    @classmethod
    def of(cls, text: str, newline: str) -> "Habits":
        """The habits of a text: tabs where more lines begin with one than with spaces, else the least indentation."""
        indents = [match[0] for match in _INDENT.finditer(text)]
        tabs = sum(indent[0] == "\t" for indent in indents)
        if 2 * tabs > len(indents):
            return cls(newline, "\t")
        widths = [len(indent) for indent in indents if set(indent) == {" "} and len(indent) > 1]
        return cls(newline, " " * min(widths, default=0))


def adapt(fill: str, habits: Habits) -> str:
    """A fill with the file's line endings and indentation; its first line goes on where the gap begins."""
    first, *rest = _LINE_END.split(fill)
    return habits.newline.join([first, *(_indented(line, habits.indent) for line in rest)])


def clean(fill: str, habits: Habits, *, max_lines: int) -> str:
    """A suggestion as it is kept: adapted, cut to whole lines, without trailing blanks; "" where nothing is left."""
    lines = adapt(fill, habits).split(habits.newline)
    if len(lines) > max_lines:
        lines = _whole(lines[:max_lines])
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or _repeats(lines):
        return ""
    return habits.newline.join([*lines[:-1], lines[-1].rstrip()])


def fit(fill: str, before: str, after: str, *, constrained: bool) -> str:
    """A fill for the place between ``before`` and ``after``; "" where it would only repeat them or break brackets.

    Where the engine kept the file valid (``constrained``) its brackets are right; elsewhere they are counted.
    """

    def broken(text: str) -> int:
        return len(balance(before + text + after))

    # A fill ends without its last line ending, by which it may repeat what follows.
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
    """The brackets of ``text`` that have no partner in it."""
    left: list[str] = []
    for bracket in _BRACKETS.findall(text):
        if left and left[-1] == _PAIRS.get(bracket):
            left.pop()
        else:
            left.append(bracket)
    return "".join(left)


def _without_closers(fill: str, after: str) -> str:
    """A fill without closing brackets at its end that stand behind the cursor already."""
    closers = fill[len(fill.rstrip(")]}")) :]
    shared = next((size for size in range(len(closers), 0, -1) if after.startswith(closers[-size:])), 0)
    return fill[: len(fill) - shared]


def _repeats_line(text: str, before: str) -> bool:
    """Whether a single line only says again what the line above says."""
    *_, above, head = ["", *before.split("\n")[-2:]]
    return "\n" not in text and (head + text).strip() == above.strip() != ""


def _indented(line: str, unit: str) -> str:
    """A line indented with tabs where the file is, and with spaces where the file is."""
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    if unit == "\t" and indent and "\t" not in indent:
        return "\t" * max(1, len(indent) // 4) + line[len(indent) :]
    return indent.replace("\t", unit) + line[len(indent) :] if unit.strip("\t") else line


def _whole(lines: list[str]) -> list[str]:
    """Lines from the first one on that leave no bracket open."""
    while lines and any(bracket in "([{" for bracket in balance("\n".join(lines))):
        lines = lines[:-1]
    return lines


def _repeats(lines: list[str]) -> bool:
    """Whether the same line stands there so often that the model has got stuck."""
    return any(line.strip() and lines[at : at + _MAX_REPEATS] == [line] * _MAX_REPEATS for at, line in enumerate(lines))
