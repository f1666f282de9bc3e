"""Code in strings: what is open in a line where strings hold code and code holds strings, and what ends it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Self

from lacuna_model.syntax.tags import Completions

MOST_BEHIND = 3  # of what may follow the ends
CLOSERS = {b"(": b")", b"[": b"]", b"{": b"}", b"${": b"}", b"#{": b"}", b"$(": b")", b"$((": b"))", b"`": b"`"}


@dataclass(frozen=True)
class Strings:
    """A language's strings by what begins them: what ends each, and what begins code in it.

    ``code`` is what has to be ended in code, ``plain`` what means nothing in a string.
    """

    strings: Mapping[bytes, tuple[bytes, frozenset[bytes]]]
    code: frozenset[bytes] = frozenset({b"(", b"[", b"{"})
    plain: tuple[bytes, ...] = ()

    @cached_property
    def tokens(self) -> re.Pattern[bytes]:
        """What finds all of these, longest first, and what is escaped."""
        marks = {*self.plain, *self.strings, *self.code, *CLOSERS.values()}
        for closer, inner in self.strings.values():
            marks |= {closer, *inner}
        ordered = sorted(marks, key=len, reverse=True)
        return re.compile(rb"\\.|" + b"|".join(map(re.escape, ordered)), re.DOTALL)

    def open_ends(self, line: bytes) -> list[bytes]:
        """What ends each string and bracket that a line leaves open, outermost first."""
        due, inside, end = list[bytes](), list[frozenset[bytes] | None](), 0
        for match in self.tokens.finditer(line):
            mark, marks = match[0], inside[-1] if inside else None  # what begins code, None being in code
            if match.start() < end or mark.startswith(b"\\"):
                continue
            if due and line.startswith(due[-1], match.start()):
                end = match.start() + len(due.pop())
                inside.pop()
            elif marks is None and mark in self.strings:
                due.append(self.strings[mark][0])
                inside.append(self.strings[mark][1])
            elif mark in (self.code if marks is None else marks):
                due.append(CLOSERS[mark])
                inside.append(None)
        return due


def _held(marks: str, *quotes: str, plain: str = "'") -> dict[bytes, tuple[bytes, frozenset[bytes]]]:
    """Strings that hold code behind some marks, each with its prefix, and those that hold none."""
    inner = frozenset(marks.encode().split())
    holding = {quote.encode(): (quote.encode().lstrip(b"fFrR$@"), inner) for quote in quotes}
    return {quote.encode(): (quote.encode(), frozenset[bytes]()) for quote in plain} | holding


_FORMATTED = [f"{prefix}{quote}" for prefix in ("f", "F", "rf", "fr") for quote in ('"', "'", '"""', "'''")]
_SCRIPT = Strings(_held("${", "`", plain="\"'"))
STRINGS = {
    "bash": Strings(_held("$(( $( ${ `", '"'), frozenset({b"$((", b"$(", b"${", b"(", b"{", b"`"})),
    "python": Strings(_held("{", *_FORMATTED, plain="\"'"), plain=(b"{{",)),
    **dict.fromkeys(("javascript", "typescript", "tsx"), _SCRIPT),
    "ruby": Strings(_held("#{", '"', "`")),
    "csharp": Strings(_held("{", '$"', '$@"', plain='"'), plain=(b"{{",)),
    "php": Strings(_held("{", '"')),
}


class Substitutions:
    """The code in strings in the line of a gap, of which ``before`` is what stands in front of it."""

    def __init__(self, strings: Strings, before: bytes) -> None:
        self._strings = strings
        self._line = before[before.rfind(b"\n") + 1 :]

    @classmethod
    def of(cls, language: str, before: bytes) -> Self | None:
        """Those of a language that has such strings."""
        strings = STRINGS.get(language)
        return cls(strings, before) if strings is not None else None

    def completions(self, fill: bytes, others: Completions) -> Iterator[bytes]:
        """The completions, and first those that end the code and the strings around it."""
        due = self._strings.open_ends(self._line + fill)
        closers = {closer for closer, inner in self._strings.strings.values() if inner}
        outer = next((place for place, closer in enumerate(due) if closer in closers), len(due))
        if outer < len(due) - 1:
            ends = b"".join(reversed(due[outer:]))
            yield ends
            yield from (ends + end for end in islice(others(fill + ends), MOST_BEHIND))
        yield from others(fill)

    def named(self, _fill: bytes, completion: bytes) -> bytes:
        """The completion as it is."""
        return completion
