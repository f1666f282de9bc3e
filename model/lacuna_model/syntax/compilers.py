"""What reads a file in the end: CPython's compiler, and strict parsers of data languages.

They reject more than a grammar does: a ``return`` outside of a function, a table twice in TOML, two documents in JSON.
A document that they refuse with any neutral text in its gaps is left to the grammar: it may be in a laxer dialect, or
newer than this interpreter. In one of Python in which nothing looks newer, an error at a fill is the fill's.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import product

import yaml

from lacuna_model.core import work
from lacuna_model.languages.language import StrictParser, StrictParsers
from lacuna_model.languages.python import compiled
from lacuna_model.syntax.faults import Fault
from lacuna_model.text.lines import splice

Gaps = Sequence[tuple[int, int]]
LARGEST = 200_000  # bytes; a larger file takes the compiler more than ten milliseconds, a parser more than 100
PARSED_NS = 400  # of work, for each byte
_PLACE = re.compile(r"at line (\d+), column (\d+)")


def python_compiles(text: bytes) -> bool:
    """Whether CPython compiles a text; one that is too large or too deep to compile counts as valid."""
    return len(text) > LARGEST or _refusal(compiled, text) is None


COMPILES: dict[str, Callable[[bytes], bool]] = {"python": python_compiles}


class Strict:
    """Asks the strict parsers of a language for the errors of a document with gaps (byte ranges of its text)."""

    def __init__(self, text: bytes, gaps: Gaps, own: StrictParsers) -> None:
        self._text, self._gaps = text, gaps
        self._own, self._parsers = own, own.parsers
        self._taken: StrictParser | None = None
        self._refused = lru_cache(maxsize=4)(_refusal)  # a fill is checked again at the end

    def faults(self, text: bytes, beside: Gaps, *, soon: bool) -> frozenset[Fault]:
        """Return the parser's error in the filled document, whose fills are in the lines of the ranges ``beside``.

        With ``soon``, a document above the language's size limit for that is not checked.
        """
        if len(text) > (self._own.soon if soon else LARGEST):
            return frozenset()
        place = self._refused(self._parsers[0], text)
        if place is None:
            self._taken = self._parsers[0]
            return frozenset()
        parser = self._taken or self._strictest
        if parser is not None and parser is not self._parsers[0]:
            place = self._refused(parser, text)
        elif parser is None:
            near = any(text.rfind(b"\n", 0, start) < place <= stop for start, stop in beside)
            place = place if near and not self._own.newer.search(self._text) else None
        return frozenset({Fault("SYNTAX", place, place)}) if place is not None else frozenset()

    @cached_property
    def _strictest(self) -> StrictParser | None:
        """The strictest parser that accepts the document with neutral text in its gaps; None without one.

        Asked once, so the proof that asks first does not pay for it.
        """
        since, fills = work.spent(), (neutral.encode() for neutral in self._own.neutral)
        texts = [self._text, *(splice(self._text, [(*gap, fill) for gap in self._gaps]) for fill in fills)]
        tried = (parser for parser, text in product(self._parsers, texts) if _refusal(parser, text) is None)
        found = next(tried, None)
        work.spend(since - work.spent())
        return found


def _refusal(parser: StrictParser, text: bytes) -> int | None:
    """The offset of a parser's error; None if it accepts the text, or cannot decide."""
    work.spend(len(text) * PARSED_NS)
    work.check()
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.start
    try:
        parser(decoded)
    except (RecursionError, MemoryError):  # nesting beyond the parser's own limits
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return len(text) - len(decoded[mark.index :].encode()) if mark is not None else len(text)
    except json.JSONDecodeError as error:
        return len(text) - len(decoded[error.pos :].encode())
    except SyntaxError as error:
        return _offset(text, error.lineno or 1, 1)
    except (ValueError, yaml.YAMLError) as error:
        named = _PLACE.search(str(error))
        return _offset(text, int(named[1]), int(named[2])) if named is not None else len(text)
    return None


def _offset(text: bytes, line: int, column: int) -> int:
    above = text.split(b"\n")[: line - 1]
    return min(sum(len(one) + 1 for one in above) + column - 1, len(text))
