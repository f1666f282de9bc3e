"""Where the lines of a region and their new text differ, and what of an answer to an instruction nobody asked for.

That is taken out where it can be told: then the rest of the answer can be used. Lines that repeat those beside the part
go, and so do fences. Changes of form alone, of code where the instruction is about comments, and of keys that the
instruction does not name are taken back. Lines that are only missing come back.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from lacuna_model.editing.change import AskedChange
from lacuna_model.editing.names import BRINGS, COMMENT, code
from lacuna_model.text import diff
from lacuna_model.text.diff import Kind
from lacuna_model.text.lines import lines_of

# Words that hold no content, so that lines of them alone may go.
_STRUCTURE = frozenset(
    {"else", "end", "do", "done", "then", "fi", "esac", "try", "finally", "begin", "pass", "default"}
)
# A comment that stands for code: "# ... rest of the function", "// existing code unchanged".
_HINT = re.compile(
    r"^\s*(?:#|//|--|/\*|\*|<!--)[^\w\n]*(?:\.\.\.|…)?\s*(?:\(?(?:the )?(?:rest|remaining|existing|other|previous|same|"
    r"unchanged|keep)\b.*(?:code|function|method|class|lines?|implementation|unchanged|same|here|before|above)?|(?:\.\.\.|…))",
    re.IGNORECASE,
)
FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\s*\S*\s*$")
# What a model says before or after its answer.
_TALK = re.compile(
    r"^\s*(?:here(?:'s| is| are)\b.*:|sure[,!.].*|certainly[,!.].*|the edited (?:part|text|code)\b.*:)\s*$",
    re.IGNORECASE,
)
_OPENS = re.compile(r"(?:[:{(\[]|=>|\b(?:do|then|begin|else|try))\s*$|^\s*[\])}]|^\s*(?:end|fi|done|esac)\b")
# In these languages, both quotes make the same strings.
QUOTES_ALIKE = frozenset({"python", "javascript", "typescript", "tsx", "css"})
_TOKEN = re.compile(r"\w+|[^\w\s]")
STRING = r"([\"'`])(?:\\.|(?!\1).)*\1"
_BLANK_ENDS = re.compile(r"\A(?:[ \t]*\r?\n)+|(?<=\n)(?:[ \t]*\r?\n)+\Z")
# Of the words of a line that goes, at least this share has to stand elsewhere in the new text.
WORDS_ELSEWHERE = 0.5
# A line that is corrected and the old one are at least so much alike, by their letters.
LETTERS_CORRECTED = 0.5


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
    alike = len(old) == len(new) or any(map(COMMENT.match, new))
    paired = [line for line in old if alike or not COMMENT.match(line)]
    if kind == "replace" and len(paired) == len(new):
        left_over = iter(new)
        for line in old:
            yield AnswerHunk(kind, (line,), (next(left_over),)) if line in paired else AnswerHunk("delete", (line,), ())
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
            found += [
                line.removesuffix(_end(line)) + near[min(place, len(near) - 1)] for place, line in enumerate(hunk.new)
            ]
    inner = [line if _end(line) else line + (ending or "\n") for line in found[:-1]]
    return "".join([*inner, *(line.removesuffix(_end(line)) + _end(before[-1]) for line in found[-1:])])


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def tidied(change: AskedChange, new: str) -> Iterator[str]:
    """The answer, each time with less taken out or put back; the last one has only the bytes of lines that stay."""
    stood = as_it_stood(change.old, indented(change.old, with_end(change.old, new)))
    if (addition := as_addition(change, stood)) != stood:
        yield addition
    less = without_repeats(change, stood)
    for new in (with_missing(change, with_reverted(change, less)), with_missing(change, less), less, stood):
        yield as_it_stood(change.old, _BLANK_ENDS.sub("", new))


def indented(old: str, new: str) -> str:
    """``new`` with the tabs or the blanks by which all lines of ``old`` are indented."""
    spaces, tabs = (re.search(rf"^{mark}", old, re.MULTILINE) for mark in ("  ", "\t"))
    if bool(spaces) == bool(tabs):
        return new
    widths = [len(line) - len(line.lstrip(" ")) for line in new.splitlines() if line.startswith("  ")]
    unit = min(widths, default=4)
    if tabs:
        return re.sub(r"^ {2,}", lambda found: "\t" * (len(found[0]) // unit), new, flags=re.MULTILINE)
    own = min((len(line) - len(line.lstrip(" ")) for line in old.splitlines() if line.startswith("  ")), default=4)
    return re.sub(r"^\t+", lambda found: " " * own * len(found[0]), new, flags=re.MULTILINE)


def with_end(old: str, new: str) -> str:
    """``new`` up to the old last line, where only that line's comma or semicolon is missing and begins the next line.

    A model that stops before the comma has to go on, since the text after the part needs one.
    """
    last = (split(old) or [""])[-1]
    bare = last.rstrip().rstrip(",;")
    if bare == last.rstrip() or re.search(r"^[ \t]*[,;]", old, re.MULTILINE):
        return new
    lines = split(new)
    for number, line in enumerate(lines[1:], 1):
        if lines[number - 1].rstrip() == bare and line.lstrip().startswith((",", ";")):
            return "".join((*lines[: number - 1], last))
    return new


def as_addition(change: AskedChange, new: str) -> str:
    """``new`` after the lines, where it has only the definitions that are to be added and none of the lines' own."""
    own, more = ({name.text for name in found} for found in (change.names, change.names_of(new)))
    if not change.asked.adds or not own or not more or not own.isdisjoint(more) or change.is_configuration:
        return new
    end = "\r\n" if "\r\n" in change.old else "\n"
    return f"{change.old.rstrip()}{end}{end}{new}"


def without_repeats(change: AskedChange, new: str) -> str:
    """``new`` without the lines that stand beside the part, without fences, and without talk."""
    found = hunks(change.old, new)
    above = [line.strip() for line in split(change.before) if line.strip()]
    below = [line.strip() for line in split(change.after) if line.strip()]
    known = {line.strip() for line in split(change.old)}
    brought = {line for line in (*above, *below) if BRINGS.match(line)} - known
    is_open = sum(bool(FENCE.match(line)) for line in split(new)) % 2 == 1
    cleaned = []
    for place, hunk in enumerate(found):
        lines = list(hunk.new)
        if hunk.kind not in ("equal", "delete"):
            if place == 0 and (count := _repeated(lines, above)) <= len(lines) - len(hunk.old):
                lines = lines[count:]
            if place == len(found) - 1:
                count = _repeated([*reversed(lines)], [*reversed(below)])
                lines = lines[: len(lines) - count] if count <= len(lines) - len(hunk.old) else lines
            lines = [line for line in lines if line.strip() not in brought and not _TALK.match(line)]
            if not change.is_prose or is_open:
                kept = known if hunk.kind == "replace" else ()
                lines = [line for line in lines if line.strip() in kept or not FENCE.match(line)]
            if not hunk.old and is_blank(lines) and not is_blank(hunk.new):
                lines = []
        cleaned.append(AnswerHunk(hunk.kind, hunk.old, tuple(lines)))
    return joined(cleaned)


def _repeated(lines: Sequence[str], beside: Sequence[str]) -> int:
    """How many of the first lines are the last ones of a text: whole lines of some length, blank ones aside."""
    best, texts = 0, list[str]()
    for count, line in enumerate(lines, 1):
        if line.strip():
            texts.append(line.strip())
            if beside[-len(texts) :] == texts and max(map(len, texts)) > 3:
                best = count
    return best


def with_reverted(change: AskedChange, new: str) -> str:
    """``new`` with the old lines in every hunk that the instruction is not about, as far as that can be told."""
    found = hunks(change.old, new)
    for rule in (_form, _indentation, _comments, _sharing, _named, _corrected):
        wrong = set(rule(change, found))
        found = [hunk.reverted() if place in wrong else hunk for place, hunk in enumerate(found)]
    return joined(found)


def _bare(change: AskedChange, lines: Sequence[str]) -> str:
    """Lines without their form: line breaks, of code all blanks, closing commas and the kind of quotes.

    Of prose, marks behind words are form, too, unless mistakes are to be corrected.
    """
    if change.is_prose:
        prose = " ".join("".join(lines).split())
        return prose if change.asked.corrects else re.sub(r"[.,;:!]+(?= |$)", "", prose)
    text = re.sub(r"\s+", "", "".join(lines))
    if change.language is not None and change.language.name in QUOTES_ALIKE:
        text = text.replace("'", '"')
    return re.sub(r"[,;]+(?=[\])}]|$)", "", text)


def _indents(hunk: AnswerHunk) -> bool:
    return [line.strip() for line in hunk.old] == [line.strip() for line in hunk.new] and hunk.kind != "equal"


def _form(change: AskedChange, found: Sequence[AnswerHunk]) -> Iterator[int]:
    """Changes of quotes, blanks within a line and line breaks, where something else changes, too."""
    changed = [place for place, hunk in enumerate(found) if hunk.kind != "equal"]
    both = [place for place in changed if found[place].old and found[place].new]
    forms = [place for place in both if _bare(change, found[place].old) == _bare(change, found[place].new)]
    if forms != changed:
        yield from (
            place for place in forms if not _indents(found[place]) and re.search(r"\w", "".join(found[place].old))
        )


def _indentation(change: AskedChange, found: Sequence[AnswerHunk]) -> Iterator[int]:
    """Changes of the indentation beside others, unless a line above them changes, and opens or closes a block."""
    opened, beside = False, any(hunk.kind != "equal" and not _indents(hunk) for hunk in found)
    for place, hunk in enumerate(found):
        if hunk.kind == "equal":
            opened = False
        elif not _indents(hunk):
            opened = opened or any(_OPENS.search(line) for line in hunk.lines)
        elif beside and not opened:
            yield place


def _comments(change: AskedChange, found: Sequence[AnswerHunk]) -> Iterator[int]:
    """Changes of code, where the instruction is about comments."""
    if not change.asked.comments_alone or change.is_prose:
        return
    before = code(change.text, change.language)
    if code(change.whole(joined(found)), change.language) == before:
        return
    for place, hunk in enumerate(found):
        alone = joined([other if other is hunk else other.reverted() for other in found])
        if hunk.kind != "equal" and code(change.whole(alone), change.language) != before:
            yield place


def _sharing(change: AskedChange, found: Sequence[AnswerHunk]) -> Iterator[int]:
    """Changes of keys that have no word of the instruction where others have one."""
    changed = [place for place, hunk in enumerate(found) if hunk.kind != "equal"]
    apart = [place for place in changed if not change.asked.shares("".join(found[place].lines))]
    if change.is_configuration and not change.asked.comments_alone and apart != changed:
        yield from (place for place in apart if found[place].kind != "insert")


def _named(change: AskedChange, found: Sequence[AnswerHunk]) -> Iterator[int]:
    """The same change in several lines, where the instruction names what only others of them have."""
    alike: dict[str, list[int]] = {}
    for place, hunk in enumerate(found):
        if hunk.kind == "replace" and len(hunk.old) == len(hunk.new) == 1:
            fresh = Counter(_TOKEN.findall(hunk.new[0])) - Counter(_TOKEN.findall(hunk.old[0]))
            alike.setdefault(" ".join(sorted(fresh.elements())), []).append(place)
    for written, group in alike.items():
        names = [[word for word in words(found[place].old[0]) - {*written.split()} if len(word) > 3] for place in group]
        said = [any(map(change.asked.says, own)) for own in names]
        if written and any(said):
            yield from (place for place, is_said in zip(group, said, strict=True) if not is_said)


def _corrected(change: AskedChange, found: Sequence[AnswerHunk]) -> Iterator[int]:
    """Lines that have other words, where mistakes of language are to be corrected."""
    for place, hunk in enumerate(found if change.asked.corrects and change.is_prose else ()):
        if hunk.kind == "replace" and not is_blank(hunk.old):
            old, new = "".join(hunk.old).strip(), "".join(hunk.new).strip()
            if SequenceMatcher(None, old, new, autojunk=False).ratio() < LETTERS_CORRECTED:
                yield place


def with_missing(change: AskedChange, new: str) -> str:
    """``new`` with the lines that are only missing in it: comments, blank lines, and what no other line takes up."""
    if change.asked.less:
        return new
    found = hunks(change.old, new)
    kinds = ["equal", *(hunk.kind for hunk in found), "equal"]
    changed = [line for hunk in found if hunk.kind != "equal" for line in hunk.new]
    back = []
    for hunk, *beside in zip(found, kinds, kinds[2:], strict=False):
        alone = beside == ["equal", "equal"] and not is_taken_up(hunk.old, changed)
        lost = hunk.kind == "delete" and (_is_lost(change, hunk, new, changed) or (alone and not change.is_prose))
        back.append(hunk.reverted() if lost else hunk)
    return joined(back)


def _is_lost(change: AskedChange, hunk: AnswerHunk, new: str, changed: Sequence[str]) -> bool:
    if is_blank(hunk.old):
        return True
    lines = [line for line in hunk.old if line.strip() and not is_line_of(line, new)]
    heads = {name.head for name in change.names}
    if any(" ".join(line.split()) in heads for line in lines):
        return True
    if change.is_configuration or (change.language is None and not change.is_prose):
        return bool(lines)
    if any(COMMENT.match(line) or BRINGS.match(line) for line in lines):
        return True
    own, others = words("".join(lines)), words("".join(changed) if change.is_prose else new)
    return len(own & others) < WORDS_ELSEWHERE * len(own)


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
