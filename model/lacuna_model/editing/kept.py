"""What an edit must not lose: lines that nobody asked to delete, and lines that the model only hints at."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

# A comment that stands for code: "# ... rest of the function", "// existing code unchanged".
_HINT = re.compile(
    r"^\s*(?:#|//|--|/\*|\*|<!--)[^\w\n]*(?:\.\.\.|…)?\s*(?:\(?(?:the )?(?:rest|remaining|existing|other|previous|same|"
    r"unchanged|keep)\b.*(?:code|function|method|class|lines?|implementation|unchanged|same|here|before|above)?|(?:\.\.\.|…))",
    re.IGNORECASE,
)


def hint(old: str, new: str) -> str:
    """A line of ``new`` that stands for lines of ``old`` that the model did not write again; "" without one."""
    known = {line.strip() for line in old.splitlines()}
    found = (line.strip() for line in new.splitlines() if line.strip() not in known and _HINT.match(line))
    fewer = len(new.splitlines()) < len(old.splitlines()) + 1
    return next(found, "") if fewer else ""


def without_losses(old: str, new: str) -> str:
    """``new``, but with the old lines at every place where fewer lines would stand in their stead."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    found: list[str] = []
    for _, first, last, start, end in _changes(before, after):
        found += before[first:last] if end - start < last - first else after[start:end]
    return "".join(found)


def carried(log_probs: Sequence[float], written: str, whole: str) -> tuple[float, ...]:
    """The log-probability of each line of ``whole``: that of the written line, 0 for a line that was put back."""
    before, after = written.splitlines(), whole.splitlines()
    found = [0.0] * len(after)
    for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            if block.a + offset < len(log_probs):
                found[block.b + offset] = log_probs[block.a + offset]
    return tuple(found)


def _changes(before: list[str], after: list[str]) -> list[tuple[str, int, int, int, int]]:
    found: list[tuple[str, int, int, int, int]] = [*SequenceMatcher(None, before, after, autojunk=False).get_opcodes()]
    return found or [("equal", 0, 0, 0, 0)]
