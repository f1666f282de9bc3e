"""Neutral fills: short texts that stand for whatever a gap may hold, to find out what is broken without it."""

from collections.abc import Iterator
from itertools import chain, islice, product, zip_longest

from lacuna_model.languages.language import Language, Lexicon
from lacuna_model.syntax.text.balance import Sides, sides_of
from lacuna_model.syntax.text.closers import GapLine
from lacuna_model.syntax.text.minimal_completions import completions
from lacuna_model.syntax.text.scan import scan
from lacuna_model.syntax.text.tags import REACH, scan_tags
from lacuna_model.text.lines import indentation

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
