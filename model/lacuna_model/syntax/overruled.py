"""Ends that a model wanted and the file did not allow.

Where a fill stops short of a valid file, what it lacks is put behind it. Closers are as good as written by the model;
names are made up, and nobody wants to read those: the fill had better end before them, where a line of it does. A model
that goes on as if its text were all there is (``x))``, where the brackets stand behind the gap already) lacks openers: the
fill ends in front of the closer that the text behind it begins with.
"""

import re
from collections.abc import Iterator

NAME = re.compile(rb"(?!pass\b)[A-Za-z_]\w*")
OPENER = re.compile(rb"[(\[{]")
CLOSER = re.compile(rb"[ \t]*([)\]}])")
NEWLINE = re.compile(rb"\r?\n")
MOST_CUTS = 12


def made_up(head: bytes, whole: bytes, what: re.Pattern[bytes] = NAME) -> bytes:
    """What of a fill ends with the first name put behind the ``head`` that the model wrote; "" where there is none."""
    found = what.search(whole, len(head)) if whole.startswith(head) else None
    return whole[: found.end()] if found is not None else b""


class Overruled:
    """For each gap the first end that was overruled: the fill up to it, and what was put behind it."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[bytes, bytes]] = {}

    def note(self, gap: int, head: bytes, whole: bytes) -> None:
        """The model would end a gap behind ``head``, of which ``whole`` is to be made."""
        if named := made_up(head, whole) or made_up(head, whole, OPENER):
            self._ends.setdefault(gap, (head, named))

    def cuts(self, gap: int, fill: bytes, behind: bytes) -> Iterator[bytes]:
        """What a fill with something made up in it may be cut to, longest first; nothing where it has nothing such.

        Its last line is ended once, here or in the text ``behind`` the gap, and so are its brackets.
        """
        head, named = self._ends.get(gap, (b"", b""))
        if named and fill.startswith(named):
            ended = NEWLINE.match(behind) is not None
            lines = [match.start() if ended else match.end() for match in NEWLINE.finditer(head)]
            ends = [len(head), *reversed(_closers(head, behind, lines[-1] if lines else 0))]
            if made_up(head, named):
                ends += [*reversed(lines), 0]
            for end in ends[:MOST_CUTS]:
                yield head[:end]


def _closers(text: bytes, behind: bytes, start: int) -> list[int]:
    """Where the closer that ``behind`` begins with stands in ``text`` from ``start`` on."""
    closer = CLOSER.match(behind)
    return [place for place in range(start, len(text)) if text[place : place + 1] == closer[1]] if closer else []
