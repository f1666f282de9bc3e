"""Strict parsers of data languages: what reads such a file in the end has the last word on its fills.

A grammar takes what they do not: a table twice in TOML, two documents in JSON, an anchor that nobody set in YAML. They
are asked only where they take the document with something neutral in its gaps: what is broken elsewhere, or written
for a laxer reader, is held against no fill.
"""

import json
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import product

import yaml

from lacuna_model.languages.strict import Parser, StrictParsers
from lacuna_model.syntax.check.error_set import Fault

Spans = Sequence[tuple[int, int]]

LARGEST = 200_000  # bytes; a larger file takes a parser more than some 100 ms
_PLACE = re.compile(r"at line (\d+), column (\d+)")


class Strict:
    """What strict parsers say of a document with gaps, byte ranges of its text."""

    def __init__(self, text: bytes, gaps: Spans, own: StrictParsers) -> None:
        self._text, self._gaps = text, gaps
        self._parsers, self._neutral, self._soon = own.parsers, own.neutral, own.soon
        self._taken: Parser | None = None

    def fault(self, text: bytes, *, soon: bool) -> Fault | None:
        """What is wrong with the document as filled, unless it is as it was.

        Nothing is said ``soon`` of one that is too large for that.
        """
        if text == self._text or len(text) > (self._soon if soon else LARGEST):
            return None
        place = _refusal(self._parsers[0], text)
        if place is None:
            self._taken = self._parsers[0]
            return None
        parser = self._taken or self._strictest
        if parser is not None and parser is not self._parsers[0]:
            place = _refusal(parser, text)
        return Fault("SYNTAX", place, place) if parser is not None and place is not None else None

    @cached_property
    def _strictest(self) -> Parser | None:
        """The strictest parser that takes the document with something neutral in its gaps; None for none."""
        texts = [self._text, *(self._filled(neutral) for neutral in self._neutral)]
        for parser, text in product(self._parsers, texts):
            if _refusal(parser, text) is None:
                return parser
        return None

    def _filled(self, neutral: str) -> bytes:
        parts, since = list[bytes](), 0
        for start, end in self._gaps:
            parts += [self._text[since:start], neutral.encode()]
            since = end
        return b"".join([*parts, self._text[since:]])


def _refusal(parser: Parser, text: bytes) -> int | None:
    """Where a parser finds an error; None where it takes the text, or cannot tell."""
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return error.start
    try:
        parser(decoded)
    except RecursionError:  # nesting beyond its own limits
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
    """The place that a message names by its line and column; the end where it does not."""
    named = _PLACE.search(message)
    if named is None:
        return len(text)
    lines = text.split(b"\n")
    return sum(len(line) + 1 for line in lines[: int(named[1]) - 1]) + int(named[2]) - 1
