"""Ends that a model wanted and the file did not allow.

Where a fill stops too early for a valid file, the missing text is appended. Appended closers are as good as the model's
own, but appended names are made up: the fill should rather end before them, in its last line or earlier. A model may
also continue as if there were no suffix (``x))``, where the suffix has the brackets already). Then openers are missing,
and the fill should end before the surplus closer.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from lacuna_model.languages.language import Lexicon
from lacuna_model.syntax.text.scan import scan

NAME = re.compile(rb"(?!pass\b)[A-Za-z_]\w*")
OPENER = re.compile(rb"[(\[{]")
CLOSER = re.compile(rb"[ \t]*([)\]}])")
TOKEN = re.compile(rb"\w+|[^\w\s]")
NEWLINE = re.compile(rb"\r?\n")
MAX_CUTS = 16  # in a line, and as many at line ends


def made_up(head: bytes, whole: bytes, what: re.Pattern[bytes] = NAME) -> bytes:
    """Return the part of a fill up to the first name after ``head``, which the model wrote; "" for none."""
    found = what.search(whole, len(head)) if whole.startswith(head) else None
    return whole[: found.end()] if found is not None else b""


class RefusedEnds:
    """For each gap the first end that was overruled: the fill up to it, and with its first made-up text.

    ``after`` holds the suffix of every gap. Without a ``lexicon`` nothing is known of the language's brackets.
    """

    def __init__(self, after: Sequence[bytes], lexicon: Lexicon | None) -> None:
        self._behind = after
        self._lexicon = lexicon
        self._ends: dict[int, tuple[bytes, bytes]] = {}

    def note(self, gap: int, head: bytes, whole: bytes) -> None:
        """Note that the model would end a gap after ``head``, which was completed to ``whole``."""
        enclosed = CLOSER.match(self._behind[gap]) is not None
        if named := made_up(head, whole) or (enclosed and made_up(head, whole, OPENER)):
            self._ends.setdefault(gap, (head, named))

    def cuts(self, gap: int, fill: bytes) -> Iterator[bytes]:
        """Yield shorter texts for a fill that holds made-up text, longest first; nothing for other fills.

        The last line is ended once, either in the fill or in the suffix.
        """
        head, named = self._ends.get(gap, (b"", b""))
        if not named or not fill.startswith(named):
            return
        ended = NEWLINE.match(self._behind[gap]) is not None
        lines = [match.start() if ended else match.end() for match in NEWLINE.finditer(head)]
        yield head
        yield from islice(self._in_line(gap, head, lines[-1] if lines else 0), MAX_CUTS)
        yield from (head[:end] for end in [*reversed(lines), 0][:MAX_CUTS])

    def _in_line(self, gap: int, head: bytes, start: int) -> Iterator[bytes]:
        """Cuts in the last line: before the closer that the suffix repeats, or after any token, closed where needed."""
        if closer := CLOSER.match(self._behind[gap]):
            ends = (place for place in range(len(head) - 1, start - 1, -1) if head[place : place + 1] == closer[1])
            yield from (head[:end] for end in ends)
            return
        for match in reversed([*TOKEN.finditer(head, start)][:-1]):
            cut = head[: match.end()]
            yield cut
            if closers := self._closers(cut):
                yield cut + closers

    def _closers(self, text: bytes) -> bytes:
        """The closers of the brackets that a text leaves open."""
        due = scan(text, self._lexicon).closers if self._lexicon is not None else ()
        return b"".join(reversed(due)) if all(len(closer) == 1 for closer in due) else b""
