"""The rest of a gap's line: where a fill would close it, or separate something from it, a second time."""

import re
from dataclasses import dataclass
from typing import Self

from lacuna_model.text.lines import CLOSER_OF, OPENER_OF, step, unmatched

QUOTES = "\"'`"
# What stands between two gaps that are values of one list.
_SEPARATORS = (",", ";")
# A string, or a character outside of strings.
_PLAIN = re.compile(r"""(["'`])(?:\\.|(?!\1)[^\\])*(?:\1|\Z)|.""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tail:
    """The bracket or quote that the rest of a gap's line begins with, which a fill must not close a second time.

    Before a comma or semicolon and the next gap, it is what separates both: the fill ends before one of its own.

    An editor closes brackets and quotes as they are opened: between ``{`` and ``}`` a model writes ``name}!``. A fill
    ``may_close`` so many brackets that it did not open: so many more are open before the gap than the rest closes.
    """

    closer: str
    may_close: int = 0
    closers: str = ""  # those that the rest begins with, in order

    @classmethod
    def of(cls, head: str, tail: str, *, gap_follows: bool = False) -> Self | None:
        """The closer between the two parts of a line; None where the rest begins with something else.

        ``gap_follows``: the next gap begins where the rest ends.
        """
        closer = tail.lstrip(" \t")[:1]
        if gap_follows and tail.strip() in _SEPARATORS and not any(head.count(quote) % 2 for quote in QUOTES):
            return cls(closer)
        if not closer or closer not in ")]}" + QUOTES:
            return None
        rest = tail.lstrip(" \t")
        closers = rest[: len(rest) - len(rest.lstrip(")]}" + QUOTES))]
        if closer in QUOTES:
            return cls(3 * closer if rest.startswith(3 * closer) else closer, 0, closers)
        opener = OPENER_OF[closer]
        opened = unmatched(char for char in head if char in (opener, closer)).count(opener)
        return cls(closer, max(opened - (len(rest) - len(rest.lstrip(closer))), 0), closers)

    def left(self, text: str) -> int | None:
        """Where a text begins to close what the rest of the line closes, if it closes the next bracket of it, too.

        ``name}!")`` between ``f"Hello {`` and ``}")`` has left the place that the gap is in; ``a} and {b`` has not.
        """
        opened, closed, first = list[str](), 0, 0
        for place, char in enumerate(text if not self.may_close and self.closer in OPENER_OF else ""):
            if char in CLOSER_OF:
                opened.append(char)
            elif opened and OPENER_OF.get(char) == opened[-1]:
                opened.pop()
            elif char == self.closers[closed] and text[place - 1 : place] != "\\":
                first = first if closed else place
                closed += 1
                if closed == min(len(self.closers), 2):
                    return first if closed == 2 else None
        return None

    def again(self, text: str) -> int | None:
        """Where a text closes what it did not open; None where it does not, or opens it again behind that."""
        if self.closer in _SEPARATORS:
            return self._beside(text)
        if (opener := OPENER_OF.get(self.closer)) is None:
            places = [match.start() for match in re.finditer(rf"(?<!\\){self.closer}", text)]
            return places[-1] if len(places) % 2 else None
        left, first = self.may_close, None
        for place, char in enumerate(text):
            left += (char == opener) - (char == self.closer)
            if left < 0 and first is None:
                first = place
        return first if left < 0 else None

    def _beside(self, text: str) -> int | None:
        """Where a text separates something else from what it began with, or closes what it did not open."""
        depth = 0
        for match in _PLAIN.finditer(text):
            char = match[0]
            if depth == 0 and (char == self.closer or char in OPENER_OF):
                return len(text[: match.start()].rstrip())
            depth += step(char)
        return None
