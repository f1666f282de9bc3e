"""The exact test for one gap: completions of its fills by the grammar, cheapest first, and whether there are any."""

from collections.abc import Iterator, Sequence
from itertools import islice

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.readings import PrefixReader
from lacuna_model.syntax.completion.repair import spelled
from lacuna_model.syntax.exact.beginnings import Beginnings
from lacuna_model.syntax.exact.completable import Completions, Start
from lacuna_model.syntax.exact.saturation import Saturation, Text
from lacuna_model.syntax.exact.suffix_reader import BEGIN, SuffixReader
from lacuna_model.syntax.lr.insertions import WORD
from lacuna_model.syntax.lr.parse_table import ParseTable, Terminal
from lacuna_model.syntax.lr.piece_cache import pieces_of, ways_of

MOST_TRIED = 120
MOST_FOUND = 24
MOST_DOUBTFUL = 8
LONGER = b"_"
MOST_BEFORE_LONGER = 3
MOST_KEPT = 64


class Suffix:
    """The terminals after a gap, and what is found out about them.

    ``opener`` is the mark of the string or comment that the gap has to open at its end, if any.
    """

    def __init__(
        self, language: Language, table: ParseTable, terminals: Sequence[Terminal], opener: bytes = b""
    ) -> None:
        self.opener = opener
        line_ends = pieces_of(language, table)[0].line_end_terminals
        self.first = terminals[0].word if terminals else b""
        self.saturation = Saturation(SuffixReader(table, terminals, line_ends), ways_of(language, table).cheapest)


class ExactGap:
    """The completions of one gap's fills."""

    def __init__(self, language: Language, reader: PrefixReader, beginnings: Beginnings, suffix: Suffix) -> None:
        self._table, self._clock = reader.table, reader.clock
        _, self._pieces = pieces_of(language, reader.table)
        self._beginnings, self._suffix = beginnings, suffix
        self._found: dict[tuple[Start, ...], Completions] = {}

    def completions(self, text: bytes) -> Iterator[bytes]:
        """Yield texts that may end a fill, cheapest first; ``text`` is the text before them, from the file's begin.

        A few that the parser would not read like this, since a precedence forbids it, come last.
        """
        return islice(self._with_longer(text, self._completions(text)), MOST_FOUND)

    def _with_longer(self, text: bytes, found: Iterator[bytes]) -> Iterator[bytes]:
        """Some completions, and after a few of them the same with a longer last word: it may be a name's beginning."""
        if not WORD.match(text[-1:]):
            yield from found
            return
        first: list[bytes] = []
        for one in islice(found, MOST_BEFORE_LONGER):
            first.append(one)
            yield one
        yield from (LONGER + one for one in first if not WORD.match(one))
        yield from found

    def _completions(self, text: bytes) -> Iterator[bytes]:
        seen, doubtful = set[bytes](), list[bytes]()
        for written in islice(self._texts(tuple(self._beginnings.starts(text))), MOST_TRIED):
            completion = self._spelled(text, written)
            if (solid := b"".join(completion.split())) in seen:
                continue
            seen.add(solid)
            if self._leads_on(text + completion):
                yield completion
            else:
                doubtful.append(completion)
        yield from doubtful[:MOST_DOUBTFUL]

    def _leads_on(self, text: bytes) -> bool:
        """Whether the parser reads the suffix after a text."""
        if self._suffix.opener:
            return True
        meets = self._suffix.saturation.reader.meets
        return any(start.text == (b"",) and meets(start.stack, BEGIN) for start in self._beginnings.starts(text))

    def admits(self, text: bytes) -> bool | None:
        """Whether some completion of a text leads to the suffix; None if time was up before that was known."""
        if next(self._texts(tuple(self._beginnings.starts(text))), None) is not None:
            return True
        return None if self._clock.over else False

    def _texts(self, starts: tuple[Start, ...]) -> Iterator[Text]:
        """The completions of some stacks; texts that differ only in their names leave the same stacks."""
        if starts not in self._found:
            if len(self._found) > MOST_KEPT:
                self._found.clear()
            saturation = self._suffix.saturation
            self._found[starts] = Completions(self._table, self._pieces, saturation, starts, self._clock)
        return iter(self._found[starts])

    def _spelled(self, text: bytes, written: Text) -> bytes:
        """The text of some terminals, after a text and before the suffix; words are kept apart."""
        rest, *own = written  # the rest of a word continues it without a blank
        last = (text + b"".join(written))[-1:]
        if self._suffix.opener:
            own.append(self._suffix.opener)
        elif own and WORD.match(last) and WORD.match(self._suffix.first):
            own.append(b" ")
        return rest + spelled(text + rest, own)
