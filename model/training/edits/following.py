"""Cuts two versions of a file into examples: a change, and what follows it within the lines below."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from lacuna_model.next_edit.changes import hunks
from lacuna_model.next_edit.tokens import LINE_ENDS, TokenizedText
from lacuna_model.text.diff import Hunk
from training.edits.example import AFTER, BEFORE, ROWS, EditExample
from training.stored.documents import Document

# A change of more lines is no single edit.
MAX_LINES = 12
# The share of examples in which nothing is to do.
NOTHING = 1 / 3
_IMPORT = re.compile(r"\s*(import|from|export\s.*\bfrom|(const|let|var)\b.*\brequire\()")
_DIGITS = re.compile(r"[\d.]+")


def examples(before: str, after: Document, seed: int) -> list[EditExample]:
    """The examples of a file that was ``before``; two thirds of them have something to do, where there are so many."""
    old, new = before.splitlines(keepends=True), after.text.splitlines(keepends=True)
    changes = [part for hunk in hunks(before, after.text) for part in _parts(old, new, hunk)]
    found: dict[bool, list[EditExample]] = {True: [], False: []}
    for change, following in pairwise([*changes, None]):
        assert change is not None
        if _is_worth(old, new, change) and (one := _example(old, new, change, following, changes, after)):
            found[one.follows].append(one)
    rng = Random(f"{seed} {after.package} {after.path}")
    rng.shuffle(found[False])
    return [*found[True], *found[False][: max(round(len(found[True]) * NOTHING / (1 - NOTHING)), 1)]]


def _parts(old: Sequence[str], new: Sequence[str], hunk: Hunk) -> Iterator[Hunk]:
    """A change as a person makes it: line by line where each line has become one other."""
    count = hunk.end - hunk.start
    if count != hunk.new_end - hunk.new_start or count > MAX_LINES:
        yield hunk
        return
    for row in range(count):
        if old[hunk.start + row] != new[hunk.new_start + row]:
            yield Hunk(hunk.start + row, hunk.start + row + 1, hunk.new_start + row, hunk.new_start + row + 1)


def _is_worth(old: Sequence[str], new: Sequence[str], change: Hunk) -> bool:
    """Whether a change says something: no formatting, no number alone, no import alone."""
    was, made = _lines(old, new, change)
    if max(change.end - change.start, change.new_end - change.new_start) > MAX_LINES:
        return False
    if _words(was) == _words(made):
        return False
    if _DIGITS.sub("0", "".join(was)) == _DIGITS.sub("0", "".join(made)):
        return False
    written = [line for line in {*was} ^ {*made} if line.strip()]
    return bool(written) and not all(map(_IMPORT.match, written))


def _words(lines: Sequence[str]) -> list[str]:
    """The tokens of lines but for those that formatting moves."""
    return [text for text in TokenizedText("".join(lines)).texts if text not in (*LINE_ENDS, ",")]


def _example(
    old: Sequence[str],
    new: Sequence[str],
    change: Hunk,
    following: Hunk | None,
    changes: Sequence[Hunk],
    after: Document,
) -> EditExample | None:
    """The example of a change; None where what follows goes beyond the lines that are rewritten, or takes it back."""
    last = change.end + ROWS
    standing = old[change.end : last]
    updated = list(standing)
    if following is not None and following.start < last:
        if not _is_worth(old, new, following) or _reverses(old, new, change, following):
            return None
        inside = [one for one in changes if one.start >= change.end and one.end <= last]
        if following not in inside:
            return None
        for one in reversed(inside):
            updated[one.start - change.end : one.end - change.end] = new[one.new_start : one.new_end]
    if not "".join(standing).strip() or not "".join(updated).strip():
        return None
    was, made = _lines(old, new, change)
    return EditExample(
        after.package,
        after.version,
        after.licence,
        after.path,
        after.language,
        "".join(new[: change.new_start])[-BEFORE:],
        "".join(was),
        "".join(made),
        "".join(standing),
        "".join(updated),
        "".join(old[last:])[:AFTER],
    )


def _reverses(old: Sequence[str], new: Sequence[str], change: Hunk, following: Hunk) -> bool:
    """Whether a change writes again what the one before has taken away."""
    was, _ = _lines(old, new, change)
    _, made = _lines(old, new, following)
    written = {line.strip() for line in made if line.strip()}
    return bool(written) and written <= {line.strip() for line in was}


def _lines(old: Sequence[str], new: Sequence[str], change: Hunk) -> tuple[Sequence[str], Sequence[str]]:
    return old[change.start : change.end], new[change.new_start : change.new_end]
