"""What a broken line can be replaced by: a neutral fill, with the block that it opens."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice, product, zip_longest

from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.syntax.text.balance import GapLine, Sides, sides_of
from lacuna_model.syntax.text.literals import REACH, scan_tags
from lacuna_model.syntax.text.minimal_completions import completions
from lacuna_model.syntax.text.scan import FAR, UNKNOWN, Scan, column_of, scan, scan_brackets
from lacuna_model.text.lines import indentation

CLOSERS = (b")", b"]", b"}")


def without_block(line: GapLine) -> bytes:
    """Return the text without a line and the block that it opens: the lines below it that are indented deeper.

    The closing bracket of that block goes, too.
    """
    below = line.below.lstrip(b"\r\n").splitlines(keepends=True)
    level = _column(line.head + line.tail + b"x")
    end = next((place for place, one in enumerate(below) if 0 <= _column(one) <= level), len(below))
    closes = end < len(below) and _column(below[end]) == level and below[end].strip()[:1] in CLOSERS
    return line.above + b"".join(below[end + closes :])


def is_laid_out(line: GapLine, fill: bytes, lexicon: Lexicon) -> bool:
    """Whether a fill fits the lines below: else it mends a bracket that another line has lost.

    If it leaves a bracket open, the line below is deeper, or the bracket is closed in the column of the fill's line; a
    fill of a whole line is no header of a block that is not indented. A bracket that it closes was not opened in a
    deeper line. From within a string it leads into no other one.
    """
    inside = scan(line.head, lexicon).inside
    if inside and inside in fill and scan(fill, lexicon, Scan(inside=inside)).inside:
        return False
    own, column = scan(fill + line.tail, lexicon, Scan(inside=inside)), column_of(line.head + fill + line.tail)
    is_whole = column > 0 and not line.head.strip()  # at the edge, the fill may lack its indentation
    if own.unmatched and is_whole and _innermost(line.above[-FAR:], lexicon) > column:
        return False
    opened = len(own.stack)
    if not opened or not line.below.strip():
        return True
    below = scan(line.below[:FAR], lexicon)
    inner = below.levels[0]
    if inner > column:
        return True
    ends = [closer.column for closer in below.unmatched[opened - 1 : opened]]
    return ends == [column] and (inner == UNKNOWN or bool(line.head.strip()))


@lru_cache(maxsize=4)
def _innermost(above: bytes, lexicon: Lexicon) -> int:
    """The column of the line that opens the innermost bracket which is open after a text; ``UNKNOWN`` without one."""
    stack = scan_brackets(above, lexicon).stack
    return stack[-1].column if stack else UNKNOWN


def _column(line: bytes) -> int:
    """The column of a line's first character; ``UNKNOWN``, which is below all columns, for a blank line."""
    return column_of(line) if line.strip() else UNKNOWN


RATHER = (b"()", b" = x", b" in x")  # texts that may be missing after a name
OPENING = (b":", b" in", b" = {", b"(", b"[", b" {")
IN_TAGS = (b">", b"x>", b'x">')  # the rests of tags and strings that may have begun
IN_STRINGS = (b'x}"',)
ITEMS = (b"x:", b"- x", b"- x: x")
MAX_TAGS = 3
GUESSES = 16  # texts that complete the line as its surroundings suggest


def neutral_fills(line: GapLine, lexicon: Lexicon) -> Iterator[tuple[bytes, bytes]]:
    """Yield neutral fills, likeliest first, each with the line that it makes."""
    operand = lexicon.operand
    if not line.head.strip() and not line.tail.strip():
        more = (b"", lexicon.filler, lexicon.statement, lexicon.field, operand + b",", operand)
        for content in dict.fromkeys((*more, *lexicon.declarations)):
            yield content, line.head + content + line.tail
        return
    head = scan(line.head, lexicon)
    quote = head.inside if len(head.inside) == 1 else b""  # no quote that ends in a line below
    own = quote.strip() + b"".join(bracket.closer for bracket in reversed(head.stack))
    ends = (own, own + lexicon.body, own + b",", b"", *(own + one for one in OPENING), b",", b")")
    values = (b"", operand, lexicon.field, lexicon.statement, b"= " + operand, *(operand + one for one in RATHER))
    for value, closer in product(dict.fromkeys(values), dict.fromkeys(ends)):
        yield value + closer, line.head + value + closer + line.tail


def completed_fills(line: GapLine, language: Language) -> Iterator[tuple[bytes, bytes]]:
    """Yield texts that complete the line as its surroundings suggest, each with the line that it makes."""
    before, after = line.above + line.head, line.tail + line.below
    sides = sides_of(before, after, language.lexicon)
    for content in _completions(sides, language):
        yield content, line.head + content + line.tail


def last_fills(line: GapLine, language: Language) -> Iterator[bytes]:
    """Yield texts that complete the text before the gap as if nothing followed."""
    before = line.above + line.head
    sides = sides_of(before, b"", language.lexicon)
    return _completions(sides, language)


def _completions(sides: Sides, language: Language) -> Iterator[bytes]:
    """Completions of an empty fill, of a declared name, of a field, and of halves of tags or strings, in turn."""
    ends, lexicon = completions(sides), language.lexicon
    halves = IN_TAGS if lexicon.tags else IN_STRINGS
    begins = dict.fromkeys((b"", lexicon.operand + b" " + lexicon.operand, lexicon.field, *halves))
    found = ([begin + end for end in islice(ends(begin), GUESSES)] for begin in begins)
    for row in zip_longest(*found):
        yield from (content for content in row if content is not None)


def neutral_lines(line: GapLine, language: Language) -> Iterator[bytes]:
    """Yield lines to put in place of the gap's line."""
    indent = indentation(line.head)
    bare = line._replace(head=indent, tail=b"")
    yield from (indent + tag for tag in _openers(line, language.lexicon))
    yield from (indent + item for item in ITEMS if language.lexicon.anchors)
    yield from (whole for _, whole in chain(completed_fills(bare, language), neutral_fills(bare, language.lexicon)))


def _openers(line: GapLine, lexicon: Lexicon) -> Iterator[bytes]:
    """Tags that open the elements that end below the line."""
    lacking = scan_tags(line.below[:REACH])[1] if lexicon.tags else []
    openers = [b"<%b>" % name for name in lacking[:MAX_TAGS]]
    yield from (b"".join(openers[count::-1]) for count in range(len(openers)))
