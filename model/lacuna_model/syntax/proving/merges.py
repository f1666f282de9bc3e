"""Files with the marks of a merge: one side of each conflict is what a fill is checked in.

No fill makes such a file parse. What a person writes beside or within a conflict belongs to one of its sides.
"""

import re
from collections.abc import Sequence

from lacuna_model.core.params import Region
from lacuna_model.core.regions import shifted
from lacuna_model.text.splice import splice

CONFLICT = re.compile(
    rb"^<{7}(?: [^\n]*)?\n(?P<ours>(?:(?![<|=>]{7})[^\n]*\n)*)(?:\|{7}[^\n]*\n(?:(?![<|=>]{7})[^\n]*\n)*)?"
    rb"={7}\r?\n(?P<theirs>(?:(?![<|=>]{7})[^\n]*\n)*)>{7}(?: [^\n]*)?(?:\n|\Z)",
    re.MULTILINE,
)


def one_side(text: bytes, regions: Sequence[Region]) -> tuple[bytes, Sequence[Region]]:
    """Return a text with one side of each conflict, and the ``regions`` (ordered, byte offsets) in it.

    The side that holds regions stays, else the first one. A conflict stays whole if a region holds some of its marks,
    or both of its sides hold regions.
    """
    removed = list[tuple[int, int]]()
    for match in CONFLICT.finditer(text):
        within = [one for one in regions if one.start < match.end() and match.start() < max(one.end, one.start + 1)]
        sides = [match.span("ours"), match.span("theirs")]
        kept = next(((start, end) for start, end in sides if all(_holds(start, end, one) for one in within)), None)
        if kept is not None:
            removed += [(match.start(), kept[0]), (kept[1], match.end())]
    moved = [shifted(one, -sum(end - start for start, end in removed if end <= one.start)) for one in regions]
    return splice(text, [(*part, b"") for part in removed]), moved


def _holds(start: int, end: int, region: Region) -> bool:
    return start <= region.start <= region.end < end
