"""Adapts the model's text for the user. Where it ends, the engine has decided.

``clean`` uses only the text and the file's style; its result is kept. ``distinct`` uses the text before the cursor at
display time, which may differ from the text that the model read if the user has typed since.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lacuna_model.text.lines import LINE_END, indentation

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
    first, *rest = LINE_END.split(fill)
    return habits.newline.join([first, *(_indented(line, habits.indent) for line in rest)])


def clean(fill: str, habits: Habits) -> str:
    """Returns a fill as it is kept: adapted, without trailing blanks; "" if none is left or the model is stuck."""
    text = adapt(fill, habits).rstrip()
    return "" if _repeats(text.split(habits.newline)) else text


def distinct(texts: Iterable[tuple[int, str]], before: str) -> Iterator[tuple[int, str]]:
    """Yields the texts, given with their index, that say something new at the end of the text ``before``.

    They are not blank, differ from all earlier ones, and do not repeat code of the line above in their first line.
    """
    *_, above, head = ["", *before.split("\n")[-2:]]
    seen = {""}
    for index, text in texts:
        line = (head + text.split("\n", 1)[0]).strip()
        repeats = line == above.strip() and _WORD.search(line)
        if text.strip() not in seen and not repeats:
            seen.add(text.strip())
            yield index, text.rstrip()


def _indented(line: str, unit: str) -> str:
    """Converts the indentation of a line to the file's tabs or spaces."""
    indent = indentation(line, " \t")
    if unit == "\t" and indent and "\t" not in indent:
        return "\t" * max(1, len(indent) // 4) + line[len(indent) :]
    return indent.replace("\t", unit) + line[len(indent) :] if unit.strip("\t") else line


def _repeats(lines: list[str]) -> bool:
    """Whether a line repeats so often in a row that the model is stuck."""
    return any(line.strip() and lines[at : at + _MAX_REPEATS] == [line] * _MAX_REPEATS for at, line in enumerate(lines))
