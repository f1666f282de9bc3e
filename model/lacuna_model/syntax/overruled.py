"""Ends that a model wanted and the file did not allow.

Where a fill stops short of a valid file, what it lacks is put behind it. Closers are as good as written by the model;
names are made up, and nobody wants to read those: the fill had better end before them, where a line of it does.
"""

import re
from collections.abc import Iterator

NAME = re.compile(rb"(?!pass\b)[A-Za-z_]\w*")
NEWLINE = re.compile(rb"\r?\n")
MOST_CUTS = 12


def made_up(head: bytes, whole: bytes) -> bytes:
    """What of a fill ends with the first name put behind the ``head`` that the model wrote; "" where there is none."""
    name = NAME.search(whole, len(head)) if whole.startswith(head) else None
    return whole[: name.end()] if name is not None else b""


class Overruled:
    """For each gap the first end that was overruled: the fill up to it, and that with the first name put behind it."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[bytes, bytes]] = {}

    def note(self, gap: int, head: bytes, whole: bytes) -> None:
        """The model would end a gap behind ``head``, of which ``whole`` is to be made."""
        if named := made_up(head, whole):
            self._ends.setdefault(gap, (head, named))

    def cuts(self, gap: int, fill: bytes, behind: bytes) -> Iterator[bytes]:
        """What a fill with names made up in it may be cut to, longest first; nothing where it has none.

        Its last line is ended once, here or in the text ``behind`` the gap.
        """
        head, named = self._ends.get(gap, (b"", b""))
        if named and fill.startswith(named):
            ended = NEWLINE.match(behind) is not None
            ends = [match.start() if ended else match.end() for match in NEWLINE.finditer(head)]
            for end in [len(head), *reversed(ends), 0][:MOST_CUTS]:
                yield head[:end]
