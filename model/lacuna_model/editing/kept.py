"""What an edit must not lose: lines that nobody asked to delete, and lines that the model only hints at."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

# So many lines at the end that are only missing were left out, unless the instruction asks for less text.
LEAST_LEFT_OUT = 3

# A comment that stands for code: "# ... rest of the function", "// existing code unchanged".
_HINT = re.compile(
    r"^\s*(?:#|//|--|/\*|\*|<!--)[^\w\n]*(?:\.\.\.|…)?\s*(?:\(?(?:the )?(?:rest|remaining|existing|other|previous|same|"
    r"unchanged|keep)\b.*(?:code|function|method|class|lines?|implementation|unchanged|same|here|before|above)?|(?:\.\.\.|…))",
    re.IGNORECASE,
)
# The beginnings of words by which people ask for less text or other text, in several languages.
_STEMS = (
    "remov|delet|drop|strip|without|simplif|short|inline|merg|replac|extract|mov|clean|dedup|unus|only|condens|collaps|"
    "combin|reduc|omit|cut|entfern|lösch|ohne|vereinfach|kürz|ersetz|streich|supprim|enlev|retir|sans|remplac|elimin|"
    "borr|quit|reemplaz|rimuov|cancell|togli|senza|apag|exclu|удал|убер"  # noqa: RUF001
)
_SIGNS = "删|移除|去掉|简化|削除|消"
_ASKS_FOR_LESS = re.compile(rf"\b(?:{_STEMS})|{_SIGNS}", re.IGNORECASE)


def asks_for_less(instruction: str) -> bool:
    """Whether an instruction asks for text to be deleted or shortened."""
    return bool(_ASKS_FOR_LESS.search(instruction))


def hint(old: str, new: str) -> str:
    """A line of ``new`` that stands for lines of ``old`` that the model did not write again; "" without one."""
    known = {line.strip() for line in old.splitlines()}
    found = (line.strip() for line in new.splitlines() if line.strip() not in known and _HINT.match(line))
    fewer = len(new.splitlines()) < len(old.splitlines()) + 1
    return next(found, "") if fewer else ""


def with_end(old: str, new: str) -> str:
    """``new`` with the end of ``old`` that it only leaves out: some lines, or all after the last change's blank line.

    Fewer than ``LEAST_LEFT_OUT`` lines are taken for a part of the edit.
    """
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    kind, first, last, start, end = _changes(before, after)[-1]
    written = after[start:end]
    if kind == "replace" and not any(map(_is_blank, written)):
        first = next((place for place in range(first, last) if _is_blank(before[place])), last)
    elif kind != "delete":
        return new
    missing = before[first:last]
    few = sum(not _is_blank(line) for line in missing) < LEAST_LEFT_OUT
    return new if few or end != len(after) else new + "".join(missing)


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


def _is_blank(line: str) -> bool:
    return not line.strip()


def _changes(before: list[str], after: list[str]) -> list[tuple[str, int, int, int, int]]:
    found: list[tuple[str, int, int, int, int]] = [*SequenceMatcher(None, before, after, autojunk=False).get_opcodes()]
    return found or [("equal", 0, 0, 0, 0)]
