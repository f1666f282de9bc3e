"""Strict parsers of data languages: the parsers that read such files make the final check of the fills.

They reject more than a grammar does: a table twice in TOML, two documents in JSON, an undefined anchor in YAML. A
parser is used only if it accepts the document with neutral text in its gaps, so no fill is blamed for errors elsewhere
or for a laxer dialect.
"""

import json
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import product

import yaml

from lacuna_model.core import work
from lacuna_model.languages.language import StrictParser, StrictParsers
from lacuna_model.syntax.check.error_set import Fault
from lacuna_model.text.lines import splice

Spans = Sequence[tuple[int, int]]

LARGEST = 200_000  # bytes; a larger file takes a parser more than 100 ms
BYTE_NS = 400  # of work, to parse
_PLACE = re.compile(r"at line (\d+), column (\d+)")


class Strict:
    """Checks a document with gaps (byte ranges of its text) with the strict parsers of its language."""

    def __init__(self, text: bytes, gaps: Spans, own: StrictParsers) -> None:
        self._text, self._gaps = text, gaps
        self._parsers, self._neutral, self._soon = own.parsers, own.neutral, own.soon
        self._taken: StrictParser | None = None

    def faults(self, text: bytes, *, soon: bool) -> frozenset[Fault]:
        """Return the parser's error in the filled document; none for the unchanged document.

        With ``soon``, a document above the language's size limit for that is not checked.
        """
        if text == self._text or len(text) > (self._soon if soon else LARGEST):
            return frozenset()
        place = _refusal(self._parsers[0], text)
        if place is None:
            self._taken = self._parsers[0]
            return frozenset()
        parser = self._taken or self._strictest
        if parser is not None and parser is not self._parsers[0]:
            place = _refusal(parser, text)
        return frozenset({Fault("SYNTAX", place, place)}) if parser is not None and place is not None else frozenset()

    @cached_property
    def _strictest(self) -> StrictParser | None:
        """The strictest parser that accepts the document with neutral text in its gaps; None without one."""
        texts = [self._text, *(self._filled(neutral) for neutral in self._neutral)]
        for parser, text in product(self._parsers, texts):
            if _refusal(parser, text) is None:
                return parser
        return None

    def _filled(self, neutral: str) -> bytes:
        return splice(self._text, [(*gap, neutral.encode()) for gap in self._gaps])


def _refusal(parser: StrictParser, text: bytes) -> int | None:
    """The offset of a parser's error; None if it accepts the text, or cannot decide."""
    work.spend(len(text) * BYTE_NS)
    work.check()
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.start
    try:
        parser(decoded)
    except RecursionError:  # nesting beyond the parser's own limits
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return len(text) - len(decoded[mark.index :].encode()) if mark is not None else len(text)
    except json.JSONDecodeError as error:
        return len(text) - len(decoded[error.pos :].encode())
    except (ValueError, yaml.YAMLError) as error:
        return _place(str(error), text)
    return None


def _place(message: str, text: bytes) -> int:
    """The offset that a message names by line and column; the end of the text without one."""
    named = _PLACE.search(message)
    if named is None:
        return len(text)
    lines = text.split(b"\n")
    return sum(len(line) + 1 for line in lines[: int(named[1]) - 1]) + int(named[2]) - 1
