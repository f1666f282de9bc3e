"""The statements beside a line and beside the headers of the blocks that it lies in, found by indentation."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Self

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.closers import GapLine
from lacuna_model.syntax.text.scan import column_of, scan
from lacuna_model.syntax.text.tags import scan_tags

# A line that begins like this continues the statement above it.
CONTINUATION = re.compile(
    rb"(?:else|elif|except|finally|catch|case|default|then|do|done|fi|esac|end|while)\b|[)\]{}\"'`.&|?:*/+-]"
    rb"|#(?![ \t]*(?:include|define|undef|pragma)\b)"  # other directives end, and elsewhere it is a comment
    rb"|(?!try\b)\w+:\s*\Z"  # a label
)
# A line that begins like this belongs to the statement below it.
LEADING = re.compile(rb"[ \t]*(?:@|template\b[^;{]*\Z)")


class Run(NamedTuple):
    """Whole lines: a statement with all its brackets, or lines that belong to the gap's own or to a header."""

    text: bytes
    is_statement: bool


class Beside(NamedTuple):
    """The lines above and below the gap's ``line``, both from there outwards."""

    line: GapLine
    above: tuple[Run, ...]
    below: tuple[Run, ...]

    @property
    def statements(self) -> tuple[int, ...]:
        """The statements by their place: those above count from 0 on, those below from -1 down; the nearest first."""
        above = (place for place, run in enumerate(self.above) if run.is_statement)
        below = (~place for place, run in enumerate(self.below) if run.is_statement)
        return tuple(sorted((*above, *below), key=lambda place: max(place, ~place)))

    def run(self, place: int) -> Run:
        """The statement at a place."""
        return self.above[place] if place >= 0 else self.below[~place]

    def line_with(self, kept: Collection[int]) -> GapLine:
        """The line with those of its statements that are ``kept``, and with all other lines."""
        known = frozenset(kept)
        above = [run.text for at, run in enumerate(self.above) if not run.is_statement or at in known]
        below = [run.text for at, run in enumerate(self.below) if not run.is_statement or ~at in known]
        return self.line._replace(above=b"".join(reversed(above)), below=b"".join(below))

    def under_plain_headers(self, lexicon: Lexicon) -> Iterator[tuple[bytes, Self]]:
        """The same within each block that it lies in, the outermost first, under some plain headers for its own."""
        for at in reversed(range(len(self.above))):
            opened = scan(self.above[at].text, lexicon).closers
            below = self._below(at, lexicon) if len(opened) == 1 and not self.above[at].is_statement else None
            if below is None:
                continue
            for header in plain_headers(opened[0], lexicon):
                above = *self.above[:at], Run(header + b"\n", is_statement=False)
                yield self.above[at].text, self._replace(above=above, below=below)

    def _below(self, header: int, lexicon: Lexicon) -> tuple[Run, ...] | None:
        """The lines below up to the end of the block that a header opens; None without that end."""
        outside = b"".join(run.text for run in reversed(self.above[header + 1 :]))
        closers = scan(b"".join((self.line.tail, *(run.text for run in self.below))), lexicon).unmatched
        place = len(closers) - 1 - len(scan(outside, lexicon).stack)
        if place < 0:
            return None
        end = closers[place].end - len(self.line.tail)
        found = list[Run]()
        for run in self.below:
            if end <= 0:
                break
            found.append(run._replace(text=run.text[:end]))
            end -= len(run.text)
        return tuple(found)


def plain_headers(closer: bytes, lexicon: Lexicon) -> list[bytes]:
    """Plain headers of a block that ends with a closer."""
    if closer == b"}":
        return [head + b"{" for head in lexicon.heads]
    return [shortest for _, end, shortest in lexicon.blocks if end == closer]


def beside(line: GapLine, lexicon: Lexicon) -> Beside:
    """Return the statements beside a line."""
    above, below = line.above.splitlines(keepends=True), line.below.splitlines(keepends=True)
    own = line.head + line.tail
    nearest = next((column_of(one) for one in reversed(above) if one.strip()), 0)
    column = column_of(own) if own.strip() and not CONTINUATION.match(own.lstrip()) else nearest
    return Beside(line, tuple(_upwards(above, column, lexicon)), tuple(_downwards(below, column, lexicon)))


def _upwards(lines: Sequence[bytes], column: int, lexicon: Lexicon) -> Iterator[Run]:
    """The lines above in runs, the nearest first."""
    run, in_header = list[bytes](), False
    for at in reversed(range(len(lines))):
        run.append(lines[at])
        own = column_of(lines[at])
        if not lines[at].strip() or own > column:
            continue
        in_header = in_header or own < column
        column = own
        if not CONTINUATION.match(lines[at].lstrip()) and not (at and _leads(lines[at - 1], column)):
            text = b"".join(reversed(run))
            yield Run(text, not in_header and _is_whole(text, lexicon))
            run, in_header = [], False
    if run:
        yield Run(b"".join(reversed(run)), is_statement=False)


def _leads(line: bytes, column: int) -> bool:
    """Whether a line belongs to the statement below it, which begins in a column."""
    return bool(line.strip()) and column_of(line) == column and LEADING.match(line) is not None


def _downwards(lines: Sequence[bytes], column: int, lexicon: Lexicon) -> Iterator[Run]:
    """The lines below in runs, the nearest first. What is left of the gap's statement, or closes a block, stays."""
    run, is_rest, leads = list[bytes](), True, False
    for line in lines:
        own = column_of(line)
        if line.strip() and own <= column and not leads and (own < column or not CONTINUATION.match(line.lstrip())):
            if run:
                text = b"".join(run)
                yield Run(text, not is_rest and _is_whole(text, lexicon))
            run, is_rest = [], CONTINUATION.match(line.lstrip()) is not None
        if line.strip():
            leads = _leads(line, own) and own <= column
            column = min(own, column)
        run.append(line)
    text = b"".join(run)
    yield Run(text, not is_rest and _is_whole(text, lexicon))


def _is_whole(text: bytes, lexicon: Lexicon) -> bool:
    found = scan(text, lexicon)
    if lexicon.tags and any(scan_tags(text)):
        return False
    return bool(text.strip()) and not (found.stack or found.unmatched or found.inside)
