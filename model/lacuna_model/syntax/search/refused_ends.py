"""Ends that a model wanted and the file did not allow.

Where a fill stops short of a valid file, what it lacks is put behind it. Closers are as good as written by the model;
names are made up, and nobody wants to read those: the fill had better end before them, in its last line or in front of
that. A model that goes on as if its text were all there is (``x))``, where the brackets stand behind the gap already)
lacks openers: the fill ends in front of the closer that is one too many.
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
MOST_CUTS = 16  # in a line, and as many ends of lines


def made_up(head: bytes, whole: bytes, what: re.Pattern[bytes] = NAME) -> bytes:
    """What of a fill ends with the first name put behind the ``head`` that the model wrote; "" where there is none."""
    found = what.search(whole, len(head)) if whole.startswith(head) else None
    return whole[: found.end()] if found is not None else b""


class RefusedEnds:
    """For each gap the first end that was overruled: the fill up to it, and that with what was first made up behind it.

    ``after`` has the text behind every gap; of a language without ``lexicon`` nothing is known of brackets.
    """

    def __init__(self, after: Sequence[bytes], lexicon: Lexicon | None) -> None:
        self._behind = after
        self._lexicon = lexicon
        self._ends: dict[int, tuple[bytes, bytes]] = {}

    def note(self, gap: int, head: bytes, whole: bytes) -> None:
        """The model would end a gap behind ``head``, of which ``whole`` is to be made."""
        enclosed = CLOSER.match(self._behind[gap]) is not None
        if named := made_up(head, whole) or (enclosed and made_up(head, whole, OPENER)):
            self._ends.setdefault(gap, (head, named))

    def cuts(self, gap: int, fill: bytes) -> Iterator[bytes]:
        """What a fill with something made up in it may be cut to, longest first; nothing where it has nothing such.

        Its last line is ended once, here or in the text behind the gap.
        """
        head, named = self._ends.get(gap, (b"", b""))
        if not named or not fill.startswith(named):
            return
        ended = NEWLINE.match(self._behind[gap]) is not None
        lines = [match.start() if ended else match.end() for match in NEWLINE.finditer(head)]
        yield head
        yield from islice(self._in_line(gap, head, lines[-1] if lines else 0), MOST_CUTS)
        yield from (head[:end] for end in [*reversed(lines), 0][:MOST_CUTS])

    def _in_line(self, gap: int, head: bytes, start: int) -> Iterator[bytes]:
        """Cuts in the last line: in front of the closer that is behind it, or anywhere, with the closers due there."""
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
        """What closes the brackets that a text leaves open."""
        due = scan(text, self._lexicon).closers if self._lexicon is not None else ()
        return b"".join(reversed(due)) if all(len(closer) == 1 for closer in due) else b""
