"""Markers: gaps that the text names itself, ``<<fill>>``, and which are not filled now.

No grammar reads a marker, and error recovery may take half a file for an error because of one. So the text that a fill
is checked in holds a stand-in of the same length in its place, and no offset moves.
"""

import re
from collections.abc import Iterator, Sequence

from lacuna_model.core.params import Region
from lacuna_model.core.regions import MARKER
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.check.error_set import Fault, tree_faults

NAME = b"__fill__"
OTHERS = (b"_fill__;", b" " * len(MARKER), b'"<fill>"', MARKER)  # where no name may stand
MAX_TRIED = 4  # markers for which the others are tried; each takes some parses


def named(text: bytes, regions: Sequence[Region]) -> bytes:
    """Return a text with a name in place of each marker that is apart from the ``regions`` (ordered, byte offsets)."""
    return _replaced(text, dict.fromkeys(_markers(text, regions), NAME))


def stood_in(text: bytes, regions: Sequence[Region], language: Language) -> bytes:
    """Return a text with what leaves the fewest errors in place of each marker that is apart from the ``regions``."""
    found = dict.fromkeys(_markers(text, regions), NAME)
    if not found:
        return text

    def faults(texts: dict[int, bytes]) -> frozenset[Fault]:
        return tree_faults(language.parser().parse(_replaced(text, texts)))

    try:
        left = faults(found)
        for at in [at for at in found if any(_may_cause(text, at, one) for one in left)][:MAX_TRIED]:
            for other in OTHERS:
                if len(now := faults({**found, at: other})) < len(left):
                    found[at], left = other, now
    except UnparsableError:  # the constraint reads the same text, and tells
        pass
    return _replaced(text, found)


def _markers(text: bytes, regions: Sequence[Region]) -> Iterator[int]:
    """Yield where the markers begin of which no region holds a byte."""
    for match in re.finditer(re.escape(MARKER), text):
        if all(one.end <= match.start() or match.end() <= one.start for one in regions):
            yield match.start()


def _may_cause(text: bytes, at: int, fault: Fault) -> bool:
    """Whether what stands at a marker may cause a fault: that is around it, behind it, or in the next line."""
    return at <= fault.end and text.count(b"\n", at, fault.start) <= 1


def _replaced(text: bytes, texts: dict[int, bytes]) -> bytes:
    if not texts:
        return text
    changed = bytearray(text)
    for at, one in texts.items():
        changed[at : at + len(MARKER)] = one
    return bytes(changed)
