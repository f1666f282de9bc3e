"""The stop rule: decides when a left-to-right model has filled a gap. Baselines use the same rule."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Self

from lacuna_model.core.enclosing import QUOTES, EnclosingDefinitions, Tail, defines
from lacuna_model.core.params import Region
from lacuna_model.text.lines import depth, first_written, indentation, last_written, lines_down, with_feeds

# What a line within a block may begin with at the left edge: nothing, white space, a closing bracket.
_EDGE = ("", " ", "\t", "\r", ")", "]", "}")
# A shorter part of a line between two gaps, a comma say, does not end the first one.
LEAST_PART = 4
# A shorter rest of the gap's line, a bracket say, may stand within a line of the fill.
LEAST_REPEAT = 3
# What ends a line that opens a block of lines, and any whose statement goes on in the next one.
_OPENS = (":", "then", "do", "else")
_GOES_ON = (*"([{,\\=+-*/%&|<>?.~", "and", "or", "not", "in", "is", *_OPENS)
# The head of a line that gives a name a value, imports or returns.
_STATEMENT = re.compile(
    r"(?<![=!<>:~+*/%&|^-])[:+*/%&|^-]?=(?![=>~])|^\s*(?:from\b.*)?import\b|^\s*(?:return|use|throw|raise)\b"
)
_COMMENT = re.compile(r"\s+(?:#|//)\s")
# A text goes round if it says the same so many times in a row: two different words or more, and so many characters.
MIN_ROUND, MAX_ROUND, ROUNDS = 10, 240, 3
_WORD = re.compile(r"[^\W\d_]{2,}")
# A number that ends with the same digit again and again; one in hexadecimal, or a text of zeros, may.
_ENDLESS = re.compile(r"(?<![\w\"'`])[1-9]\d*?(\d)\1{29}")
_LAST_WORD = re.compile(r"(?<=\s)[^\W\d]\w*\Z")
# A fill that begins on a blank line does not begin with one of so many lines below.
LINES_BELOW, LEAST_BELOW = 5, 7
# So many lines above say whether comments stand behind code.
LINES_ABOVE = 100
# What opens and closes a block of code in Markdown; a model that writes one has begun an answer about the text.
_FENCES = ("```", "~~~")
# The lines of a paragraph, at most: a list of keys has no end of its own.
MAX_PARAGRAPH_LINES = 8


@dataclass(frozen=True, slots=True)
class LineLimit:
    """A limit of ``lines`` for a fill; ``keeps_newline``: the newline of the last line belongs to the fill."""

    lines: int
    keeps_newline: bool

    @classmethod
    def of(cls, region: Region, after: bytes) -> Self | None:
        """The limit of a region that the text ``after`` follows; None where any number of lines is allowed."""
        lines = 1 if region.single_line else region.max_lines
        return cls(lines, not region.single_line and not after.startswith((b"\n", b"\r"))) if lines else None

    def cut(self, fill: bytes) -> bytes:
        """The fill without the lines beyond the limit."""
        lines = fill.split(b"\n", self.lines)
        if len(lines) <= self.lines:
            return fill
        kept = b"\n".join(lines[: self.lines])
        return kept + b"\n" if self.keeps_newline else kept.removesuffix(b"\r")


class StopRule:
    """Finds the end of a fill in a growing text: all rules about where a fill ends, for every caller.

    A model that only continues text does not know where the gap ends. The fill ends

    - with the last line that its region allows (``limit``);
    - where the model repeats ``resumes``, the first non-blank line of the text after the gap;
    - where it closes the bracket or quote that the rest of the gap's line closes (``tail``);
    - where it leaves the indented block that the gap lies in (``in_block``), or the ``definitions`` around the gap;
    - with its line, or its paragraph, where no grammar reads the text (``lines_above`` are those that it has);
    - where it begins to say the same again and again, after the first time;
    - before a line that stands right ``below``, where it would begin with that;
    - with its statement, where that stands ``alone`` (before a blank line, or at the end of the text), and before a
      comment behind it, where the lines above have no such ``comments``;
    - with its last whole statement, where it runs into its budget (``whole``).

    ``head`` is the text before the gap on the gap's first line. ``mid_line``: ``resumes`` is the rest of the gap's
    line, so a line of the fill may end with it. ``broken``: another gap interrupts that line. ``newline_follows``: the
    text after the gap begins with a newline, which ends the fill's last line. ``loose``: a blank line is above the gap,
    so its fill may also stand behind the definition. Lines may end with ``\\r\\n``, here and in a fill.
    """

    def __init__(
        self,
        before: str,
        after: str,
        until: int | None = None,
        limit: LineLimit | None = None,
        *,
        has_grammar: bool = True,
    ) -> None:
        """The rule for the gap between two texts; the next gap, if any, begins ``until`` characters into ``after``."""
        until = None if until is None else len(with_feeds(after[:until]))
        before, after = with_feeds(before), with_feeds(after)
        above_head, _, self.head = before.rpartition("\n")
        head, first, part = self.head.strip(), first_written(after), after[:until].lstrip("\n")
        self.limit = limit
        self.broken = until is not None and first.startswith(part) and len(part.strip()) >= LEAST_PART
        self.resumes = (part if self.broken else first).rstrip()
        self.newline_follows = after[:1] == "\n"
        above = last_written(before)
        in_block = above[:1].isspace() or above.rstrip().endswith(":")
        self.mid_line = (
            bool(self.resumes)
            and not self.newline_follows
            and (bool(head) or (in_block and not self.resumes[0].isspace()))
        )
        below = after.partition("\n")[2] if self.mid_line else after
        self.definitions = EnclosingDefinitions.around(before, after if self.newline_follows else "\n" + below)
        next_line = first_written(below) or " "
        self.in_block = in_block and (next_line[0].isspace() or self.definitions.headers[:1] == (0,))
        gap_follows = bool(until) and "\n" not in after[:until]
        self.tail = Tail.of(self.head, after[:until].partition("\n")[0], gap_follows=gap_follows)
        self.loose = not self.head and not above_head.rpartition("\n")[2].strip()
        self.lines_above = None if has_grammar else frozenset(filter(None, map(str.strip, above_head.split("\n"))))
        self.below = _lines_below(self.head, after[:until]) if not until and not self.mid_line else frozenset[str]()
        ends_text = not after.strip() and bool(head) and not defines(head)
        self.alone = ends_text or (after.startswith("\n\n") and bool(_STATEMENT.search(self.head)))
        self.comments = self.alone and any(map(_has_comment, above_head.rsplit("\n", LINES_ABOVE)[-LINES_ABOVE:]))

    def end(self, text: str, *, final: bool) -> str | None:
        """The fill where ``text`` has reached its end, else None; ``final``: no more text follows."""
        return next(self.ends(text, final=final), None)

    def ends(self, text: str, *, final: bool) -> Iterator[str]:
        """The fills where ``text`` may end, the shortest first: if one cannot be, the next one is the end.

        A line is checked once it is complete: ``return x`` may still become ``return x + 1``.
        """
        kept = self.limit.cut(text.encode()).decode() if self.limit else text
        if kept != text:
            yield from self.ends(kept, final=True)
            return
        paragraph = self._paragraph_end(text, final=final)
        if paragraph is not None and (paragraph < len(text) or not final):
            yield self._last_line_closed(_ended(text[:paragraph]))
            return
        definitions, in_block, begun = self.definitions, self.in_block, first_written(text)
        if self.loose and begun:  # the first line tells where the fill stands
            definitions, in_block = definitions.over(begun), in_block and begun[0].isspace()
        position, lines = 0, text.split("\n")
        statements = self._statements(lines, final=final)
        for index, line in enumerate(lines):
            whole = line if index else self.head + line
            complete = index < len(lines) - 1 or final
            if index or not self.head:  # what defines something is known once the line is complete
                leaving = definitions.left_by(line) if complete else None
                if leaving == "behind":
                    yield self._last_line_closed(text[: position + len(line) + 1])
                elif leaving or (in_block and _is_at_edge(line)):
                    yield self._last_line_closed(_ended(text[:position]))
            if complete or self._is_passed(line):
                length = self._own_length(line.rstrip(), whole.rstrip())
                if length is not None:
                    yield self._last_line_closed(text[: position + length])
            again = self.tail.again(text[: position + len(line)]) if complete and self.tail else None
            if again is None and self.tail and not index:
                again = self.tail.left(line)
            if again is not None:
                yield text[:again]
            if complete and index == 0 and whole.rstrip() in self.below:
                yield ""
            if statements.get(index, 0) > 0:
                yield text[: statements[index]]
            position += len(line) + 1
        if (once := first_round(text)) is not None:
            yield text[:once].rstrip(" \t\r,")
        if final:
            yield text

    def _paragraph_end(self, text: str, *, final: bool) -> int | None:
        """How many characters of a growing text are its line or paragraph; None while it may go on, or has a grammar.

        Such texts are settings of unknown formats, prose, lists of names. A fill that begins within a line ends with
        it, any other one with its paragraph, and before a fence or a line that stands in the text already.
        """
        if self.lines_above is None:
            return None
        lines, position, written = text.split("\n"), 0, False
        if self.head.strip():
            return len(lines[0].removesuffix("\r")) if final or len(lines) > 1 else None
        for index, line in enumerate(lines):
            complete = final or index < len(lines) - 1
            known = complete and line.strip() in self.lines_above
            ends = complete and written and not line.strip()
            if line.lstrip().startswith(_FENCES) or known or ends or index == MAX_PARAGRAPH_LINES:
                return position
            written = written or bool(line.strip())
            position += len(line) + 1
        return None

    def _statements(self, lines: Sequence[str], *, final: bool) -> dict[int, int]:
        """By the lines that end a statement, how many characters of the fill that leaves, without a comment behind it.

        None from the first line of a block on.
        """
        found, position, left_open = dict[int, int](), -len(self.head), 0
        for index, line in enumerate(lines if self.alone else ()):
            whole = line if index else self.head + line
            code = (whole if self.comments else _without_comment(whole)).rstrip()
            known = final or index < len(lines) - 1 or len(code) < len(whole.rstrip())
            if known and code and left_open + depth(code) <= 0:
                if _ends_with(code, _OPENS):
                    break
                if not goes_on(code):
                    found[index] = position + len(code)
            left_open += depth(whole)
            position += len(whole) + 1
        return found

    def whole(self, text: str) -> Iterator[str]:
        """What a fill that has run into its budget may be: its lines up to one that leaves no bracket open.

        One that has no whole line is cut before its last word, which may be half of one.
        """
        ends = [match.start() for match in re.finditer("\n", text) if text[: match.start()].strip()]
        kept = [text[:end] for end in reversed(ends)]
        found = [one for one in kept if depth(one) == 0][:1] + kept[:1]
        yield from dict.fromkeys(one.removesuffix("\r") if self.newline_follows else one + "\n" for one in found)
        if not found and (words := _LAST_WORD.sub("", text).rstrip()) and words != text:
            yield words

    def _last_line_closed(self, text: str) -> str:
        """The text; where ``newline_follows``, without trailing white space that contains a newline."""
        return _ended(text, keeps_newline=False) if self.newline_follows else text

    def _own_length(self, line: str, whole: str) -> int | None:
        """How many characters of a complete line belong to the fill where ``resumes`` is found in it, else None.

        At the end of a line it may also close a bracket of the fill, and be no repeat of the suffix: such is the end of
        ``bar()`` between ``foo(`` and ``)``. ``whole`` is the line with the text before the gap.
        """
        rest = self.resumes
        if not rest:
            return None
        if not self.mid_line:
            return 0 if whole == rest or (self.broken and whole.startswith(rest)) else None
        place = line.find(rest)
        if self.broken:
            return place if place >= 0 else None
        if line.endswith(rest):
            place = len(line) - len(rest)
        elif not self._is_passed(line):
            return None
        head, own = whole[: len(whole) - len(line)], line[:place]
        closes = depth(own) > 0 and abs(depth(head + own + rest)) > abs(depth(whole + rest))
        may_close = self.tail is not None and self.tail.may_close and self.tail.again(line) is None
        return None if may_close or closes else place

    def _is_passed(self, line: str) -> bool:
        """Whether a line has the rest of the gap's line, and goes on behind it."""
        return self.mid_line and len(self.resumes) >= LEAST_REPEAT and self.resumes in line[: len(line) - 1]


def first_round(text: str) -> int | None:
    """How long a text is that says the same at its end several times, with the first of them; None for any other."""
    if (number := _ENDLESS.search(text)) is not None:
        return number.end(1)
    end = len(text)
    for length in range(MIN_ROUND, min(MAX_ROUND, end // ROUNDS) + 1):
        said = text[end - length :]
        if text.endswith(said * ROUNDS) and len(set(_WORD.findall(said))) > 1:
            first = end - ROUNDS * length
            while first and text[first - 1] == text[first - 1 + length]:
                first -= 1
            return first + length
    return None


def goes_on(line: str) -> bool:
    """Whether the statement of a line goes on in the next one, or opens a block there."""
    return _ends_with(line.rstrip(), _GOES_ON)


def _ends_with(line: str, marks: Sequence[str]) -> bool:
    """Whether a line ends with one of some marks or whole words."""
    return any(line.endswith(one) and not (one.isalpha() and line[: -len(one)][-1:].isalnum()) for one in marks)


def _without_comment(line: str) -> str:
    """A line without the comment behind its code."""
    places = (match.start() for match in _COMMENT.finditer(line))
    outside = (place for place in places if not any(line.count(quote, 0, place) % 2 for quote in QUOTES))
    return line[: next(outside, len(line))]


def _has_comment(line: str) -> bool:
    return _without_comment(line) not in (line, "")


def _lines_below(head: str, after: str) -> frozenset[str]:
    """The next lines of the block below, which a fill on a blank line does not begin with, as they are indented."""
    written = (line.rstrip() for line in lines_down(after) if line.strip())
    lines = list(islice(written, LINES_BELOW)) if not head.strip() else []
    depths = [len(indentation(line)) for line in lines]
    block = takewhile(lambda pair: pair[1] >= depths[0], zip(lines, depths, strict=True))
    return frozenset(line for line, width in block if width == depths[0] and len(line.strip()) >= LEAST_BELOW)


def _is_at_edge(line: str) -> bool:
    """Whether a line begins at the left edge, with neither a closing bracket nor perhaps an ``end``."""
    return line[:1] not in _EDGE and not "end".startswith(line.strip())


def _ended(text: str, *, keeps_newline: bool = True) -> str:
    """A text without the white space at its end, if that contains a newline, of which the first may be kept."""
    bare = text.rstrip()
    blank = text[len(bare) :]
    if "\n" not in blank:
        return text
    return bare + ("\r\n" if "\r\n" in blank else "\n") * keeps_newline
