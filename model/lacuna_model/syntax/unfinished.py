"""Lines of an unfinished file: the blocks around them are still open, and a line need not close them.

In an editor that closes no brackets, every block being written is open, and one more line would have to end with
``}}}`` for the file to parse. So the checks add these closers after the line. They are no part of the result, which
parses once the blocks are closed that were open before.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, product

from lacuna_model.core import work
from lacuna_model.core.work import Clock
from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.syntax.document import Check, Document
from lacuna_model.syntax.faults import tree_faults
from lacuna_model.syntax.scan import scan
from lacuna_model.syntax.sides import ENDIF, MAX_OPEN, GapLine, count_open, line_of, ways
from lacuna_model.text.lines import indentation

# A line that begins like this belongs to the statement below it.
LEADING = re.compile(rb"[ \t]*(?:@|template\b[^;{]*\Z)")
MAX_WAYS = 12  # ways to close the open blocks
MAX_SECONDS = 0.05  # of work, to try them; each takes a parse
# Ends of a line that continues in the next one.
GOES_ON = (b",", b"+", b"-", b"*", b"/", b"%", b"=", b"&", b"|", b"<", b">", b"?", b":", b"(", b".", b"!", b"^")


def document_of(
    text: bytes, gaps: Sequence[tuple[int, int]], language: Language, clock: Clock | None = None, *, in_line: bool
) -> Document:
    """Return the document that checks fills of these gaps; ``in_line`` if each fill is one line.

    A last line without a line end gets one, as an editor adds it: a directive of C needs it.
    """
    if in_line and b"\n" not in text[gaps[-1][1] :]:
        text += b"\n"
    document = Document(text, gaps, language, clock, in_line=in_line)
    if not in_line or len(gaps) > 1:
        return document
    sides = document.sides()
    opened, due = 0, 0
    if language.lexicon.conditionals:
        opened, due = count_open(text[: gaps[0][0]])[0], count_open(text[gaps[0][1] :])[1]
    if sides.left.inside or len(sides.target.stack) > sides.target.kept:
        return document
    line = line_of(text, *gaps[0])
    own = scan(line.head, language.lexicon)
    outer = sides.left.stack[: len(sides.left.stack) - len(own.stack)]
    brackets = outer[sides.target.kept :]
    if (not brackets and opened <= due) or len(brackets) > MAX_OPEN:
        return document
    front = line.above + b"".join(bracket.closer for bracket in own.unmatched)
    closers = _closers(front, line.below, ways(brackets, ENDIF * (opened - due), language.lexicon), language)
    return Unfinished(text, gaps[0], language, clock, line, closers) if closers else document


def _closers(front: bytes, below: bytes, ways: Iterable[list[bytes]], language: Language) -> list[bytes]:
    """The closers of the open blocks, innermost first, with which the rest of the file has the fewest errors."""
    parse = language.parser().parse
    leads = [*_leads(front.rstrip().rpartition(b"\n")[2], language.lexicon), b"\n" + language.lexicon.filler]

    def faults(closers: Sequence[bytes]) -> int:
        return min(len(tree_faults(parse(b"".join([front, lead, *closers, below])))) for lead in leads)

    until = work.mark(MAX_SECONDS)
    best, fewest = list[bytes](), faults(())
    for way in islice(ways, MAX_WAYS):
        if not fewest or (best and work.reached(until)):
            break
        number = faults(way)
        if number < fewest or (number == fewest and not best):
            best, fewest = way, number
    return best


def _leads(line: bytes, lexicon: Lexicon) -> list[bytes]:
    """Texts to put before the closers: nothing, or a continuation if the line needs one."""
    leads = list[bytes]()
    if line.rstrip().endswith(GOES_ON):
        operands = [operand for operand in (lexicon.operand, lexicon.field) if operand]
        leads += [operand + end for operand, end in product(operands, dict.fromkeys((b"", lexicon.terminator)))]
    if LEADING.match(line):
        leads += lexicon.declarations
    return [b"", *(b"\n" + indentation(line) + lead for lead in leads)]


class Unfinished(Document):
    """A document of one gap, with closers after the gap's line that are no part of its result.

    A fill has to close the brackets that the line itself opens. If the line closes more, that many closers fewer are
    added; if it continues in the next line, a continuation is put before them. A fill with which the text needs none of
    them is valid, too.
    """

    def __init__(
        self,
        text: bytes,
        gap: tuple[int, int],
        language: Language,
        clock: Clock | None,
        line: GapLine,
        closers: Sequence[bytes],
    ) -> None:
        super().__init__(_with(line, text, b"".join(closers)), [gap], language, clock, in_line=True)
        self._plain, self._line, self._closers = text, line, closers
        self._ended = len(scan(line.head + line.tail, language.lexicon).unmatched)
        self._others: dict[bytes, Document] = {b"".join(closers): self}

    def check(self, fills: Sequence[bytes]) -> Check:
        """The same, with the closers after the line."""
        return self._first_valid(fills, partial(Document.check, fills=fills))

    def check_fresh(self, fills: Sequence[bytes]) -> Check:
        """The same, with the closers after the line."""
        return self._first_valid(fills, partial(Document.check_fresh, fills=fills))

    def _first_valid(self, fills: Sequence[bytes], check: Callable[[Document], Check]) -> Check:
        """The verdict of the first continuation with which the fill is valid, else of the likeliest one."""
        verdicts = list[Check]()
        for document in self._documents(self._line.head + fills[0] + self._line.tail):
            verdicts.append(check(document))
            if verdicts[-1].valid and (document is self or not self._spoils(document, fills[0])):
                return verdicts[-1]
        return next((verdict for verdict in verdicts if not verdict.valid), verdicts[0])

    def _spoils(self, document: Document, fill: bytes) -> bool:
        """Whether a fill leaves an error in what is put behind its line, which alone may have one."""
        text = document.assemble([fill])
        begin = len(self._line.above + self._line.head + fill + self._line.tail)
        end = len(text) - len(self._line.below)
        faults = tree_faults(self.language.parser().parse(text)) if begin < end else ()
        return any(begin <= fault.start <= fault.end <= end for fault in faults)

    def _documents(self, line: bytes) -> Iterator[Document]:
        """The documents with each continuation of a line and its closers."""
        ended = len(scan(line, self.language.lexicon).unmatched) - self._ended
        conditionals = count_open(line)[1]
        closers = b"".join(self._closers[max(ended, 0) :]).replace(ENDIF, b"", conditionals)
        for lead in _leads(line, self.language.lexicon):
            after = lead + closers
            if after not in self._others:
                text = _with(self._line, self._plain, after)
                self._others[after] = Document(text, self._gaps, self.language, self._clock, in_line=True)
            yield self._others[after]
        yield self._whole_text

    @cached_property
    def _whole_text(self) -> Document:
        """The document without closers: the gap may lie in a word that is one."""
        return Document(self._plain, self._gaps, self.language, self._clock)


def _with(line: GapLine, text: bytes, inserted: bytes) -> bytes:
    """The text with something inserted after the line."""
    place = len(text) - len(line.below)
    return text[:place] + inserted + text[place:]
