"""The lines of a region and of its new text: what they are, and what the new ones have lost."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lacuna_model.editing.names import COMMENT
from lacuna_model.text import diff
from lacuna_model.text.diff import Kind
from lacuna_model.text.lines import lines_of


@dataclass(frozen=True, slots=True)
class AnswerHunk:
    """Lines of the old text (with their line ends) and the lines of the new text that stand in their place."""

    kind: Kind
    old: tuple[str, ...]
    new: tuple[str, ...]

    def reverted(self) -> "AnswerHunk":
        """The hunk with the old lines."""
        return AnswerHunk("equal", self.old, self.old)

    @property
    def lines(self) -> tuple[str, ...]:
        """Its old and its new lines."""
        return (*self.old, *self.new)


def split(text: str) -> list[str]:
    """The lines of a text with their ends; only LF and CR LF end a line."""
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def hunks(old: str, new: str) -> list[AnswerHunk]:
    """The hunks of two texts in order; lines are the same if they differ in blanks at the end alone."""
    before, after = split(old), split(new)
    keys = [line.rstrip() for line in before], [line.rstrip() for line in after]
    found: list[AnswerHunk] = []
    for kind, hunk in diff.blocks(*keys):
        found += _finer(kind, before[hunk.start : hunk.end], after[hunk.new_start : hunk.new_end])
    return found


def changes(old: str, new: str) -> list[AnswerHunk]:
    """The hunks in which two texts differ."""
    return [hunk for hunk in hunks(old, new) if hunk.kind != "equal"]


def _finer(kind: Kind, old: Sequence[str], new: Sequence[str]) -> Iterator[AnswerHunk]:
    """A hunk as one, or line by line where as many lines replace the old ones, comments aside."""
    if kind == "replace" and len(old) == len(new):
        yield from (AnswerHunk(kind, (one,), (other,)) for one, other in zip(old, new, strict=True))
        return
    code = [line for line in old if not COMMENT.match(line)]
    if kind == "replace" and len(code) == len(new) and not any(map(COMMENT.match, new)):
        left_over = iter(new)
        for line in old:
            is_comment = COMMENT.match(line) is not None
            yield AnswerHunk("delete", (line,), ()) if is_comment else AnswerHunk(kind, (line,), (next(left_over),))
        return
    # Blank lines part blocks.
    ends = [row for row in range(1, len(old)) if old[row - 1].strip() and not old[row].strip()]
    blocks = sum(bool(line.strip() and not above.strip()) for above, line in pairwise(["", *new]))
    if kind == "replace" and 0 < blocks < len(ends) + bool(old[-1].strip()):  # the answer ends too early
        yield from _finer(kind, old[: ends[blocks - 1]], new)
        yield AnswerHunk("delete", tuple(old[ends[blocks - 1] :]), ())
        return
    yield AnswerHunk(kind, tuple(old), tuple(new))


def joined(found: Sequence[AnswerHunk]) -> str:
    """The new text."""
    return "".join(line for hunk in found for line in hunk.new)


def is_blank(lines: Sequence[str]) -> bool:
    """Whether lines have no text."""
    return not "".join(lines).strip()


# Words that hold no content, so that lines of them alone may go.
_STRUCTURE = frozenset(
    {"else", "end", "do", "done", "then", "fi", "esac", "try", "finally", "begin", "pass", "default"}
)


def words(text: str) -> set[str]:
    """The different words of a text, but for those that hold no content."""
    return set(re.findall(r"\w+", text)) - _STRUCTURE


def is_taken_up(lines: Sequence[str], changed: Sequence[str]) -> bool:
    """Whether each of some lines has all its words in one of the lines that have changed."""
    others = [words(line) for line in changed]
    return all(any(own <= one for one in others) for line in lines if (own := words(line)))


def is_line_of(line: str, text: str) -> bool:
    """Whether a line is one of a text, blanks around it aside."""
    return line.strip() in {other.strip() for other in split(text)}


def as_it_stood(old: str, new: str) -> str:
    """``new`` with the bytes of ``old`` in every line that stays, its line end and the blanks before it among them.

    Lines that are new end as the lines do in whose place they stand, or those before them. The text ends as ``old``.
    """
    before = split(old)
    ending = _end(before[0]) if before else ""
    found: list[str] = []
    for hunk in hunks(old, new):
        if hunk.kind == "equal":
            found += hunk.old
        else:
            near = [_end(line) for line in hunk.old or found[-1:]] or [ending]
            found += [_body(line) + near[min(place, len(near) - 1)] for place, line in enumerate(hunk.new)]
    inner = [line if _end(line) else line + (ending or "\n") for line in found[:-1]]
    return "".join([*inner, *(_body(line) + _end(before[-1]) for line in found[-1:])])


def _body(line: str) -> str:
    return line[: len(line) - len(_end(line))]


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


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
    before, after = lines_of(written), lines_of(whole)
    found = [0.0] * len(after)
    for row, new_row in diff.pairs(before, after):
        if row < len(log_probs):
            found[new_row] = log_probs[row]
    return tuple(found)
