"""What an edit must not lose: lines that nobody asked to delete, and lines that the model only hints at."""

import re
from collections.abc import Sequence

from lacuna_model.text import diff

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
    for _, hunk in diff.blocks(before, after):
        lines, others = before[hunk.start : hunk.end], after[hunk.new_start : hunk.new_end]
        found += lines if len(others) < len(lines) else others
    return "".join(found)


def carried(log_probs: Sequence[float], written: str, whole: str) -> tuple[float, ...]:
    """The log-probability of each line of ``whole``: that of the written line, 0 for a line that was put back."""
    before, after = written.splitlines(), whole.splitlines()
    found = [0.0] * len(after)
    for row, new_row in diff.pairs(before, after):
        if row < len(log_probs):
            found[new_row] = log_probs[row]
    return tuple(found)
