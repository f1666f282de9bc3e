"""Strings that hold code, and code that holds strings: the openers and closers of both in a language."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

CLOSERS = {b"(": b")", b"[": b"]", b"{": b"}", b"${": b"}", b"#{": b"}", b"$(": b")", b"$((": b"))", b"`": b"`"}


@dataclass(frozen=True)
class Strings:
    """A language's strings by opener: the closer, and the openers of code in the string.

    ``code`` are the openers in code that need a closer, ``plain`` the marks that mean nothing in a string.
    """

    strings: Mapping[bytes, tuple[bytes, frozenset[bytes]]]
    code: frozenset[bytes] = frozenset({b"(", b"[", b"{"})
    plain: tuple[bytes, ...] = ()

    @cached_property
    def tokens(self) -> re.Pattern[bytes]:
        """A pattern of all these marks, longest first, and of escapes."""
        marks = {*self.plain, *self.strings, *self.code, *CLOSERS.values()}
        for closer, inner in self.strings.values():
            marks |= {closer, *inner}
        ordered = sorted(marks, key=len, reverse=True)
        return re.compile(rb"\\.|" + b"|".join(map(re.escape, ordered)), re.DOTALL)

    def within(self, line: bytes) -> Iterator[list[bytes]]:
        """Yield the closers that a line leaves open if it begins in a string and ends in code, for each such string."""
        for opener, (_, inner) in self.strings.items():
            if inner:
                due = self.open_ends(line, opener)
                if len(due) > 1:
                    yield due

    def open_ends(self, line: bytes, begun: bytes = b"") -> list[bytes]:
        """Return the closers of the strings and brackets that a line leaves open, outermost first.

        ``begun`` is the opener of the string that the line begins in.
        """
        due, inside, end = list[bytes](), list[frozenset[bytes] | None](), 0
        if begun:
            closer, inner = self.strings[begun]
            due, inside = [closer], [inner]
        for match in self.tokens.finditer(line):
            mark, marks = match[0], inside[-1] if inside else None  # the openers of code in a string, None in code
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


def strings_with_code(marks: str, *quotes: str, plain: str = "'") -> dict[bytes, tuple[bytes, frozenset[bytes]]]:
    """Return strings that hold code after some marks, each with its prefix, and ``plain`` ones that hold none."""
    inner = frozenset(marks.encode().split())
    holding = {quote.encode(): (quote.encode().lstrip(b"fFrR$@"), inner) for quote in quotes}
    return {quote.encode(): (quote.encode(), frozenset[bytes]()) for quote in plain} | holding
