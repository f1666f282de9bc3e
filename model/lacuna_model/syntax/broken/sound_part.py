"""The sound part of a broken file: a line is checked in it if no line could make the whole file valid.

The line is not to blame for a lost bracket or a half-written statement elsewhere. Error recovery is of
little use there, since the extent of an error depends on every token around. Neutral fills alone decide what is broken,
so that no fill can move an error of its own into the removed text. In the whole file a fill may leave no more errors
than the neutral fill that makes the part valid.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice, product

from tree_sitter import Point, Tree

from lacuna_model.core import work
from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.broken.neutral import neutral_fills
from lacuna_model.syntax.broken.part import AddedErrors, Gap, Part
from lacuna_model.syntax.broken.unfinished import document_of
from lacuna_model.syntax.check.compilers import python_culprit
from lacuna_model.syntax.check.error_set import Fault, tree_faults
from lacuna_model.syntax.check.indentation import indentation_faults
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.reparse import advance
from lacuna_model.syntax.text.closers import GapLine, brackets_open, line_of, ways
from lacuna_model.syntax.text.scan import scan

MAX_WAYS = 6  # ways to close the open blocks
MAX_ROUNDS = 6  # of removing lines
MAX_ASKED = 12  # texts that are compiled to find the cause
MAX_LINES = 3  # of a fault that are removed with it
MAX_SECONDS = 0.25  # of work, to find out whether a text is broken whatever the line is
PART_SECONDS = 0.1  # of work, to find out the same for a part


def sound_part(text: bytes, gap: Gap, language: Language, clock: Clock | None = None, *, in_line: bool) -> Part | None:
    """Return the text without its broken lines, or all of it if a fill may repair it; None if neither is valid.

    Fills that are not ``in_line`` may repair brackets over several lines. Only Python has a compiler that finds the
    broken lines well enough, so for other languages the result is None.
    """
    if language.name != "python":
        return None
    try:
        return _Search(text, gap, language, clock or Clock(), in_line=in_line).find()
    except UnparsableError:
        return None


class _Search:
    """Looks for the largest valid part, with neutral fills alone."""

    def __init__(self, text: bytes, gap: Gap, language: Language, clock: Clock, *, in_line: bool) -> None:
        self._text, self._gap, self._language, self._clock = text, gap, language, clock
        self._in_line = in_line
        self._faults = _Faults(language, clock, in_line=in_line)

    def find(self) -> Part | None:
        """The whole text or its largest valid part; None without one."""
        lexicon, (begin, end) = self._language.lexicon, self._gap
        left, right = scan(self._text[:begin], lexicon), scan(self._text[end:], lexicon)
        inside, is_balanced = left.inside.strip(), len(left.stack) == len(right.unmatched)
        is_end = self._in_line and end == len(self._text)
        line = line_of(self._text + b"\n" if is_end else self._text, begin, end)  # with the newline that an editor adds
        ends_below = len(inside) > 1 and line.above.rfind(lexicon.opener_of(inside)) >= 0
        if not (self._in_line or is_balanced) or (len(inside) > 1 and not ends_below):
            return None
        neutral = self._faults.neutral(line)
        if neutral is not None:
            return Part(self._text, self._gap, neutral)
        if not self._faults.are_certain(line):
            return None
        parts = _ended(line, inside, lexicon) if ends_below else _parts(line, self._faults)
        return next(filter(None, map(self._sound, parts)), None)

    def _sound(self, part: GapLine) -> Part | None:
        neutral = self._faults.neutral(part)
        if neutral is None:
            return None
        begin, end = self._gap
        text = part.above + part.head + self._text[begin:end] + part.tail + part.below
        gap = (start := len(part.above) + len(part.head)), start + end - begin
        document = document_of(text, [gap], self._language, self._clock, in_line=self._in_line)
        if not document.check([neutral]).valid:
            return None
        return Part(text, gap, neutral, document, AddedErrors(self._text, self._gap, self._language, (neutral,)))


class _Faults:
    """Finds the faults that a file has whatever its line is."""

    def __init__(self, language: Language, clock: Clock, *, in_line: bool) -> None:
        self._language, self._clock, self._in_line = language, clock, in_line
        self._parser = language.parser()
        self._known: dict[GapLine, tuple[frozenset[Fault], bool]] = {}

    def are_certain(self, line: GapLine) -> bool:
        """Whether there are faults whatever the line is; False if the budget ends before every line is tried."""
        faults, is_all = self._whatever(line, MAX_SECONDS)
        return is_all and bool(faults)

    def fewest(self, line: GapLine) -> frozenset[Fault]:
        """The faults with the line and the closers that leave the fewest, as far as the budget goes."""
        return self._whatever(line, PART_SECONDS)[0]

    def _whatever(self, line: GapLine, seconds: float) -> tuple[frozenset[Fault], bool]:
        if line not in self._known:
            best: frozenset[Fault] | None = None
            is_all, tried = True, list[bytes]()
            until = work.mark(seconds)
            for _, inserted, found in self._tried(
                line, _any_lines(line, self._language.lexicon, in_line=self._in_line)
            ):
                tried.append(inserted)
                best = found if best is None or len(found) < len(best) else best
                is_all = not work.reached(until) and not self._clock.over
                if not best or not is_all:
                    break
            self._known[line] = (best | self._cause(line, tried) if best else frozenset()), is_all
        return self._known[line]

    def _cause(self, line: GapLine, tried: Sequence[bytes]) -> frozenset[Fault]:
        """The cause that the language's compiler reports for the tried line with which it gets furthest."""
        texts = [(line.above + one + line.below, one) for one in tried[:MAX_ASKED]]
        found = ((*python_culprit(text), text, inserted) for text, inserted in texts)
        _, number, text, inserted = max(found, key=lambda one: (one[0], -one[1]))
        place = sum(len(one) + 1 for one in text.split(b"\n")[: number - 1])
        return frozenset({_moved(Fault("SYNTAX", place, place), len(line.above), len(inserted))})

    def neutral(self, part: GapLine) -> bytes | None:
        """A fill with which a part has no fault, whatever closes its blocks; None if there is none."""
        until = work.mark(PART_SECONDS)
        for content, _, found in self._tried(part, neutral_fills(part, self._language.lexicon)):
            if not found:
                return content
            if work.reached(until) or self._clock.over:
                break
        return None

    def _tried(
        self, line: GapLine, contents: Iterator[tuple[bytes, bytes]]
    ) -> Iterator[tuple[bytes, bytes, frozenset[Fault]]]:
        """Yields each fill, the whole text in place of its line, and the faults of the text around."""
        lexicon = self._language.lexicon
        brackets, conditionals = brackets_open(line, lexicon)
        ends = [b""]
        if self._in_line and (brackets or conditionals):
            ends = [b"".join(way) for way in islice(ways(brackets, conditionals, lexicon), MAX_WAYS)] + ends
        base = self._parser.parse(line.above + line.below)
        start, point = len(line.above), advance(Point(0, 0), line.above)
        for (content, own), end in product(contents, ends):
            inserted, tree = own + end, base.copy()
            text = line.above + inserted + line.below
            tree.edit(start, start, start + len(inserted), point, point, advance(point, inserted))
            found = self._found(self._parser.parse(text, tree), text)
            yield content, inserted, frozenset(_moved(fault, start, len(inserted)) for fault in found)

    def _found(self, tree: Tree, text: bytes) -> frozenset[Fault]:
        faults = tree_faults(tree)
        faults = faults or indentation_faults(tree, text)
        return faults or frozenset({Fault("SYNTAX", 0, 0)} if any(python_culprit(text)) else ())


def _moved(fault: Fault, start: int, length: int) -> Fault:
    """A fault's position in the text above and below the line, without the line's ``length`` bytes at ``start``."""

    def place(at: int) -> int:
        return at if at <= start else start + max(at - start - length, 0)

    return Fault(fault.kind, place(fault.start), place(fault.end))


def _any_lines(line: GapLine, lexicon: Lexicon, *, in_line: bool) -> Iterator[tuple[bytes, bytes]]:
    """The lines to try, likeliest first: with a neutral fill in the gap, or another line altogether."""
    indent = line.head[: len(line.head) - len(line.head.lstrip())]
    yield from neutral_fills(line, lexicon)
    yield from neutral_fills(line._replace(head=indent, tail=b""), lexicon)
    others = (b"if x:", b"try:", b"else:", b"except:", b"}", b")")
    yield from ((one, indent + one) for one in others)
    if not line.head.strip():
        yield from ((one, one) for one in _blocks(line, in_line=in_line))


def _blocks(line: GapLine, *, in_line: bool) -> Iterator[bytes]:
    """Lines to try in place of a blank line where blocks are columns: a clause of a ``try``, or a header's body.

    A ``try`` without a clause yet is broken; the search has already found any fill of several lines that completes it.
    """
    columns = dict.fromkeys(
        raw[: len(raw) - len(raw.lstrip())] for raw in reversed(line.above.split(b"\n")) if raw.strip()
    )
    outer = [one for one in columns if one.startswith(line.head)][:MAX_WAYS]
    yield from (one + clause for one in outer for clause in (b"except: pass", b"finally: pass"))
    if not in_line:
        yield from (one + b"    pass" for one in (line.head, *outer))


def _parts(line: GapLine, faults: _Faults) -> Iterator[GapLine]:
    """Parts of a file that may be valid, the largest first."""
    spared = line
    for _ in range(MAX_ROUNDS):
        yield spared
        less = _without_lines(spared, faults.fewest(spared))
        if less == spared:
            break
        spared = less
    yield spared._replace(below=b"")
    yield line._replace(below=b"")
    for above in _enclosing(line):
        yield line._replace(above=above, below=b"")
    bare = line.head.lstrip()
    yield GapLine(b"async def x():\n while x:\n", b"  " + bare, line.tail, b"")
    for opener in (b"", b"x(\n", b"x = [\n", b"[\n", b"{\n"):
        yield GapLine(opener, bare, line.tail, b"")


def _ended(line: GapLine, inside: bytes, lexicon: Lexicon) -> Iterator[GapLine]:
    """Parts of a file that close the comment or string of the gap after its line, the largest first."""
    yield line._replace(below=b"\n" + inside + line.below)
    yield line._replace(below=b"\n" + inside)
    opener, bare = lexicon.opener_of(inside), line.head.lstrip()
    yield GapLine(b"" if opener in bare else opener + b"\n", bare, line.tail, b"\n" + inside)


def _without_lines(line: GapLine, faults: Collection[Fault]) -> GapLine:
    """The file without the lines where some faults begin and end; at first their headers are kept."""
    gone = set[int]()
    text = line.above + line.below
    for fault in faults:
        first, last = text.count(b"\n", 0, fault.start), text.count(b"\n", 0, fault.end)
        gone |= {*range(first, last + 1)} if last - first < MAX_LINES else {first}
    row = line.above.count(b"\n")
    above = [_header_of(one) if at in gone else one for at, one in enumerate(line.above.split(b"\n"))]
    below = line.below.split(b"\n")
    below = [_header_of(one) if at + row in gone and at else one for at, one in enumerate(below)]
    return line._replace(above=b"\n".join(above), below=b"\n".join(below))


def _header_of(line: bytes) -> bytes:
    """A header in place of a line that is one; else nothing."""
    indent = line[: len(line) - len(line.lstrip())]
    less = indent + b"if x:" if line.rstrip().endswith(b":") else b""
    return less if less != line else b""


def _enclosing(line: GapLine) -> Iterator[bytes]:
    """The lines above that are indented ever less than the line: first all of them, then the innermost alone.

    None for an empty line: a fill of it has an indentation of its own.
    """
    if not line.head:
        return
    column, found = len(line.head) - len(line.head.lstrip()), list[bytes]()
    for raw in reversed(line.above.split(b"\n")):
        indent = len(raw) - len(raw.lstrip())
        if raw.strip() and indent < column and not raw.lstrip().startswith((b"}", b")", b"]", b"#")):
            found.append(raw + b"\n")
            column = indent
    for count in dict.fromkeys((len(found), 2, 1)):
        yield b"".join(reversed(found[:count]))
