"""What is broken is left out: the part of a file that a line is judged in, where no line could make the file sound.

A merge's markers, a bracket lost below or a statement half written are not this line's doing, and error recovery tells
little of it there: how far an error goes depends on every token around. What is left out is no part of the check alone.
"""

import re
import time
from collections.abc import Collection, Iterator
from itertools import islice, permutations, product

from tree_sitter import Point, Tree

from lacuna_model.syntax.closers import Line, brackets_open, line_of, ways
from lacuna_model.syntax.error_set import Fault, tree_faults
from lacuna_model.syntax.indentation import indentation_faults
from lacuna_model.syntax.languages import Language, Lexicon
from lacuna_model.syntax.reparse import advance
from lacuna_model.syntax.scan import scan

Gap = tuple[int, int]
MOST_WAYS = 6  # to end the blocks that are open
MOST_ROUNDS = 4  # of leaving out lines
MOST_LINES = 3  # of a fault that are left out with it
MOST_SECONDS = 0.2  # of this thread, to find out whether a text is broken whatever the line is
MERGE = re.compile(rb"^<{7}[^\n]*\n(.*?)^={7}[^\n]*\n(.*?)^>{7}[^\n]*", re.MULTILINE | re.DOTALL)
OPENING = (b" {", b":", b" then", b"; then", b" do", b"; do", b" in", b" => {", b" = {", b"(", b"[")
PHP = b"<?php"
MARKER = re.compile(rb"^(?:<{7}|={7}|>{7}|\|{7})(?:[ \t][^\n]*)?$", re.MULTILINE)


def sound_part(text: bytes, gap: Gap, language: Language, *, in_line: bool) -> tuple[bytes, Gap]:
    """The text without what is broken in it, and where the gap is then; the same text where a fill may mend it.

    Fills that are not ``in_line`` may mend more: brackets, over several lines.
    """
    begin, end = gap
    left, right = scan(text[:begin], language.lexicon), scan(text[end:], language.lexicon)
    inside, is_balanced = left.inside.strip(), len(left.stack) == len(right.unmatched)
    if in_line and end == len(text):  # as an editor would save it
        text += b"\n"
    line, faults = line_of(text, begin, end), _Faults(language, in_line=in_line)
    if not (in_line or is_balanced) or not faults.fewest(line):
        return text, gap
    if inside and not _ends_lines_below(inside, line, language.lexicon):
        return text, gap
    for part in _ended(line, inside, language.lexicon) if inside else _parts(line, language, faults):
        if not faults.fewest(part, kept=True):
            start = len(part.above) + len(part.head)
            cut = part.head + text[begin:end] + part.tail
            return part.above + cut + part.below, (start, start + end - begin)
    return text, gap


class _Faults:
    """Counts the faults that a file has whatever its line is."""

    def __init__(self, language: Language, *, in_line: bool) -> None:
        self._language, self._in_line = language, in_line
        self._parser = language.parser()
        self._known: dict[tuple[Line, bool], frozenset[Fault]] = {}

    def fewest(self, line: Line, *, kept: bool = False) -> frozenset[Fault]:
        """The faults with what leaves the fewest in the line and at the ends of its blocks, as far as time goes.

        Where what there is of the line is not ``kept``, it may be another one altogether.
        """
        if (line, kept) not in self._known:
            self._known[line, kept] = self._fewest(line, kept=kept)
        return self._known[line, kept]

    def _fewest(self, line: Line, *, kept: bool) -> frozenset[Fault]:
        until, lexicon = time.thread_time() + MOST_SECONDS, self._language.lexicon
        brackets, conditionals = brackets_open(line, lexicon)
        ends = [b""]
        if self._in_line and (brackets or conditionals):
            ends = [b"".join(way) for way in islice(ways(brackets, conditionals, lexicon), MOST_WAYS)] + ends
        base = self._parser.parse(line.above + line.below)
        start, point = len(line.above), advance(Point(0, 0), line.above)
        best: frozenset[Fault] | None = None
        for end, own in product(ends, _neutral_lines(line, lexicon, kept=kept)):
            inserted, tree = own + end, base.copy()
            text = line.above + inserted + line.below
            tree.edit(start, start, start + len(inserted), point, point, advance(point, inserted))
            found = self._found(self._parser.parse(text, tree), text)
            if best is None or len(found) < len(best):
                best = frozenset(_moved(fault, start, len(inserted)) for fault in found)
            if not best or time.thread_time() > until:
                break
        return best or frozenset()

    def _found(self, tree: Tree, text: bytes) -> frozenset[Fault]:
        faults = tree_faults(tree)
        return indentation_faults(tree, text) if not faults and self._language.columns else faults


def _moved(fault: Fault, start: int, length: int) -> Fault:
    """A fault where it is in the text above the line and below it, with nothing for the line."""

    def place(at: int) -> int:
        return at if at <= start else start + max(at - start - length, 0)

    return Fault(fault.kind, place(fault.start), place(fault.end))


def _neutral_lines(line: Line, lexicon: Lexicon, *, kept: bool) -> Iterator[bytes]:
    """What the line may be, likeliest first: with something in its gap, or another one altogether."""
    indent = line.head[: len(line.head) - len(line.head.lstrip())]
    operand, end = lexicon.operand, lexicon.terminator
    if line.head.strip() or line.tail.strip():
        values = [b"", operand, lexicon.field, lexicon.statement]
        own = b"".join(bracket.closer for bracket in reversed(scan(line.head, lexicon).stack))
        closers = [own, own + end, own + lexicon.body, own + b",", b"", *(own + one for one in OPENING), b",", b")"]
        for value, closer in product(dict.fromkeys(values), dict.fromkeys(closers)):
            yield line.head + value + closer + line.tail
        if kept:
            return
    more = (b"", lexicon.filler, lexicon.statement, lexicon.field, operand + b",", operand, operand + end)
    yield from (indent + one for one in dict.fromkeys(more))
    yield from (indent + one for one in lexicon.declarations)
    if kept:
        return
    openers = [head.rstrip() + b" {" for head in lexicon.heads[:3]] + [head for _, _, head in lexicon.blocks]
    yield from (indent + one for one in (*openers, b"if x:", b"try:", b"else:", b"except:", b"} else {", b"}", b")"))
    yield from (indent + closer for closer in dict.fromkeys(closer for _, closer, _ in lexicon.blocks))


def _parts(line: Line, language: Language, faults: _Faults) -> Iterator[Line]:
    """Parts of a file that may be sound, the largest first."""
    merged = _without_merges(line)
    spared = merged
    for _ in range(MOST_ROUNDS):
        yield spared
        less = _without_lines(spared, faults.fewest(spared))
        if less == spared:
            break
        spared = less
    yield spared._replace(below=b"")
    yield merged._replace(below=b"")
    for above in _enclosing(merged):
        yield merged._replace(above=above, below=b"")
    bare, mark = line.head.lstrip(), line.above.find(PHP)
    begin = line.above[: mark + len(PHP)] + b"\n" if mark >= 0 else b""
    openers = [head + b"{\n" for head in language.lexicon.heads] + [
        head + b"\n" for _, _, head in language.lexicon.blocks
    ]
    nested = [one + b"{\n" + two + b"{\n" for one, two in permutations(language.lexicon.heads[:4], 2)]
    for opener in (b"", *openers, *nested, b"x(\n", b"x = [\n", b"[\n", b"{\n"):
        yield Line(begin + opener, bare, line.tail, b"")
    if language.columns:
        yield Line(b"async def x():\n while x:\n", b"  " + bare, line.tail, b"")


def _ends_lines_below(inside: bytes, line: Line, lexicon: Lexicon) -> bool:
    """Whether what ends a comment or string may stand in a line below."""
    return len(inside) > 1 and line.above.rfind(lexicon.opener_of(inside)) >= 0


def _ended(line: Line, inside: bytes, lexicon: Lexicon) -> Iterator[Line]:
    """Parts of a file in which the comment or string of the gap ends behind its line, the largest first."""
    yield line._replace(below=b"\n" + inside + line.below)
    yield line._replace(below=b"\n" + inside)
    opener, bare = lexicon.opener_of(inside), line.head.lstrip()
    yield Line(b"" if opener in bare else opener + b"\n", bare, line.tail, b"\n" + inside)


def _without_merges(line: Line) -> Line:
    """The file without the markers of a merge, and without what the other side has."""
    above, below = (MERGE.sub(lambda match: b"\n" * match[0].count(b"\n"), one) for one in (line.above, line.below))
    return line._replace(above=MARKER.sub(b"", above), below=MARKER.sub(b"", below))


def _without_lines(line: Line, faults: Collection[Fault]) -> Line:
    """The file without the lines that some faults begin and end in."""
    gone = set[int]()
    text = line.above + line.below
    for fault in faults:
        first, last = text.count(b"\n", 0, fault.start), text.count(b"\n", 0, fault.end)
        gone |= {*range(first, last + 1)} if last - first < MOST_LINES else {first}
    row = line.above.count(b"\n")
    above = [b"" if at in gone else one for at, one in enumerate(line.above.split(b"\n"))]
    below = [b"" if at + row in gone and at else one for at, one in enumerate(line.below.split(b"\n"))]
    return line._replace(above=b"\n".join(above), below=b"\n".join(below))


def _enclosing(line: Line) -> Iterator[bytes]:
    """The lines above that stand ever further left than the line, all of them and then the innermost alone."""
    column, found = len(line.head) - len(line.head.lstrip()), list[bytes]()
    for raw in reversed(line.above.split(b"\n")):
        indent = len(raw) - len(raw.lstrip())
        if raw.strip() and indent < column and not raw.lstrip().startswith((b"}", b")", b"]", b"#", b"//", b"*")):
            found.append(raw + b"\n")
            column = indent
    mark = line.above.find(PHP)
    begin = line.above[: mark + len(PHP)] + b"\n" if mark >= 0 else b""
    for count in dict.fromkeys((len(found), 2, 1)):
        yield begin + b"".join(reversed(found[:count]))
