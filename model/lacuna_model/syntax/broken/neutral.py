"""Neutral fills: short texts that stand for whatever a gap may hold, to find out what is broken without it."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, product, zip_longest

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.balance import Balance, Sides
from lacuna_model.syntax.text.closers import Line
from lacuna_model.syntax.text.minimal_completions import Closer
from lacuna_model.syntax.text.scan import scan
from lacuna_model.syntax.text.tags import REACH, scan_tags

RATHER = (b"()", b" = x", b" in x")  # texts that may be missing after a name
OPENING = (b":", b" in", b" = {", b"(", b"[", b" {")
MOST_TAGS = 3
GUESSES = 8  # texts that complete the line as its surroundings suggest


def neutral_fills(line: Line, lexicon: Lexicon) -> Iterator[tuple[bytes, bytes]]:
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


def completed_fills(line: Line, lexicon: Lexicon) -> Iterator[tuple[bytes, bytes]]:
    """Yield texts that complete the line as the brackets around suggest, each with the line that it makes."""
    text, start = b"".join(line), len(line.above) + len(line.head)
    for content in _completions(Balance(text, [(start, start)], lexicon).sides(0), lexicon):
        yield content, line.head + content + line.tail


def last_fills(line: Line, lexicon: Lexicon) -> Iterator[bytes]:
    """Yield texts that complete the text before the gap as if nothing followed."""
    text, tags = line.above + line.head, list(_tags(line._replace(below=b""), lexicon))
    return _completions(Balance(text, [(len(text), len(text))], lexicon).ending(0), lexicon, tags)


def _completions(sides: Sides, lexicon: Lexicon, tags: Sequence[bytes] = ()) -> Iterator[bytes]:
    """Completions of an empty fill, of a declared name, of a field and of ``tags``, in turn."""
    closer = Closer(sides)
    begins = dict.fromkeys((b"", lexicon.operand + b" " + lexicon.operand, lexicon.field, *tags))
    found = ([begin + end for end in islice(closer.completions(begin), GUESSES)] for begin in begins)
    for row in zip_longest(*found):
        yield from (content for content in row if content is not None)


def neutral_lines(line: Line, lexicon: Lexicon) -> Iterator[bytes]:
    """Yield lines to put in place of the gap's line."""
    indent = line.head[: len(line.head) - len(line.head.lstrip())]
    bare = line._replace(head=indent, tail=b"")
    yield from (indent + tag for tag in _tags(line, lexicon))
    yield from (whole for _, whole in chain(completed_fills(bare, lexicon), neutral_fills(bare, lexicon)))


def _tags(line: Line, lexicon: Lexicon) -> Iterator[bytes]:
    """Openers of the elements that end below the line, and closers of those that begin above it."""
    if not lexicon.tags:
        return
    opened, lacking = scan_tags(line.above[-REACH:])[0], scan_tags(line.below[:REACH])[1]
    yield from (
        b"".join(b"<%b>" % name for name in lacking[count::-1]) for count in range(min(len(lacking), MOST_TAGS))
    )
    closers = [b"</%b>" % name for name in reversed(opened)]
    yield from (b"".join(closers[:count]) for count in sorted({*range(1, MOST_TAGS + 1), len(closers)}) if closers)
