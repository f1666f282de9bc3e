"""The part of a text that its grammar can read: a grammar may be older than the language.

A statement in newer syntax makes error recovery misread everything around it. So the demand on a fill is shortened, as
far as need be: to the text without the statements that the grammar cannot read; to the inner blocks, under a plain
header; to the brackets and strings. Only whole statements are left out, and never half of a pair of brackets: a lost
bracket is for the fill to repair.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from lacuna_model.core import work
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.broken.beside import Beside, beside, plain_headers
from lacuna_model.syntax.broken.neutral import completed_fills, neutral_fills
from lacuna_model.syntax.broken.part import AddedErrors, Gap, Part
from lacuna_model.syntax.broken.tolerant import counted_part
from lacuna_model.syntax.broken.unfinished import document_of
from lacuna_model.syntax.check.error_set import tree_faults
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.text.closers import GapLine, line_of
from lacuna_model.syntax.text.scan import Scan, scan

MAX_FILLS = 40
FEW_FILLS = 12  # for each shortened text
MAX_SECONDS = 0.1  # of work, to find out whether a fill lets the grammar read the whole text
BACK_SECONDS = 0.2  # of work, to put statements back


def spared_part(text: bytes, gap: Gap, language: Language, clock: Clock | None = None, *, in_line: bool) -> Part | None:
    """Return the part of a text that its grammar can read; None if some fill, or another line, makes all of it so.

    None, too, where brackets outside the gap lack their other half.
    """
    try:
        return _Search(text, gap, language, clock or Clock(), in_line=in_line).find()
    except UnparsableError:
        return None


class _Search:
    """Looks for the largest part that can be read, with neutral fills alone."""

    def __init__(self, text: bytes, gap: Gap, language: Language, clock: Clock, *, in_line: bool) -> None:
        self._text, self._gap, self._language, self._clock = text, gap, language, clock
        self._in_line = in_line
        self._parser = language.parser()

    def find(self) -> Part | None:
        """The largest part; None if there is no need of one."""
        line = line_of(self._text, *self._gap)
        fills = list(islice(self._fills(line, MAX_FILLS), MAX_FILLS))
        if not fills or self._neutral(line, fills, work.mark(MAX_SECONDS)) is not None:
            return None
        parts = map(self._part, self._shortened(beside(line, self._language.lexicon)))
        found = next(filter(None, parts), None)
        if found is None and self._in_line:
            found = counted_part(self._text, self._gap, self._language, self._clock)
        return found

    def _fills(self, line: GapLine, most: int) -> Iterator[bytes]:
        """Neutral fills of a line with which every bracket and string has its other half."""
        lexicon = self._language.lexicon
        left, rights = scan(line.above + line.head, lexicon), dict[bytes, Scan]()
        own = len(scan(line.head, lexicon).stack)
        likely = islice(completed_fills(line, self._language), most // 2)
        for fill, _ in islice(chain(likely, neutral_fills(line, lexicon)), most):
            if self._clock.over:
                return
            alone = scan(fill, lexicon, Scan(inside=left.inside))
            if alone.stack or len(alone.unmatched) > own:
                continue  # it mends what another line has lost
            mid = scan(fill, lexicon, left)
            if mid.inside not in rights:
                rights[mid.inside] = scan(line.tail + line.below, lexicon, Scan(inside=mid.inside))
            right = rights[mid.inside]
            inwards = tuple(bracket.closer for bracket in right.unmatched)
            if not (mid.unmatched or right.stack or right.inside) and mid.closers[::-1] == inwards:
                yield fill

    def _neutral(self, line: GapLine, fills: Iterable[bytes], until: int | None = None) -> bytes | None:
        """A fill of the line with which the grammar can read its text; None if there is none."""
        for fill in fills:
            if self._reads(line, fill):
                return fill
            if self._clock.over or (until is not None and work.reached(until)):
                break
        return None

    def _reads(self, line: GapLine, fill: bytes) -> bool:
        tree = self._parser.parse(b"".join((line.above, line.head, fill, line.tail, line.below)))
        return not tree_faults(tree)

    def _shortened(self, around: Beside) -> Iterator[tuple[GapLine, bytes]]:
        """The texts without statements that cannot be read, the longest first, each with a neutral fill."""
        for header, bare in ((b"", around), *around.under_plain_headers(self._language.lexicon)):
            line = bare.line_with(())
            fill = self._neutral(line, self._fills(line, FEW_FILLS))
            if fill is not None:
                kept = self._put_back(bare, fill, (), bare.statements, work.mark(BACK_SECONDS))
                gone = [bare.run(place).text for place in bare.statements if place not in kept]
                if any(map(self._is_unreadable, (header, *gone))):
                    yield bare.line_with(kept), fill

    def _is_unreadable(self, statement: bytes) -> bool:
        """Whether the grammar cannot read a statement or a header, neither alone nor in some block."""
        lexicon = self._language.lexicon
        closers = b"".join(reversed(scan(statement, lexicon).closers))
        frames = [(b"", b""), *((header + b"\n", b"}\n") for header in plain_headers(b"}", lexicon))]
        texts = (begin + statement + closers + b"\n" + end for begin, end in frames)
        return bool(statement) and all(tree_faults(self._parser.parse(text)) for text in texts)

    def _put_back(
        self, bare: Beside, fill: bytes, kept: tuple[int, ...], more: tuple[int, ...], until: int
    ) -> tuple[int, ...]:
        """The statements that are kept, with those of some ``more`` with which the text can still be read."""
        if not more or work.reached(until) or self._clock.over:
            return kept
        if self._reads(bare.line_with((*kept, *more)), fill):
            return *kept, *more
        if len(more) == 1:
            return kept
        half = len(more) // 2
        return self._put_back(bare, fill, self._put_back(bare, fill, kept, more[:half], until), more[half:], until)

    def _part(self, found: tuple[GapLine, bytes]) -> Part | None:
        line, neutral = found
        original = self._text[slice(*self._gap)]
        start = len(line.above) + len(line.head)
        text = b"".join((line.above, line.head, original, line.tail, line.below))
        gap = start, start + len(original)
        document = document_of(text, [gap], self._language, self._clock, in_line=self._in_line)
        if not document.check([neutral]).valid:
            return None
        return Part(text, gap, neutral, document, AddedErrors(self._text, self._gap, self._language, (neutral, b"")))
