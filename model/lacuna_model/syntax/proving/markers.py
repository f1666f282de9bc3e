"""Markers: gaps that the text names itself, ``<<fill>>``, and which are not filled now.

No grammar reads a marker, and error recovery may take half a file for an error because of one. So the text that a fill
is checked in holds a stand-in of the same length in its place, and no offset moves.
"""

from collections.abc import Sequence

from lacuna_model.core.params import Region
from lacuna_model.core.regions import MARKER, marked, with_fills
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.check.error_set import Fault, tree_faults

NAME = "__fill__"
OTHERS = ("_fill__;", " " * len(MARKER), '"<fill>"', MARKER.decode())  # where no name may stand
MAX_TRIED = 4  # markers for which the others are tried; each takes some parses


def named(text: bytes, regions: Sequence[Region]) -> bytes:
    """Return a text with a name in place of each marker that is apart from the ``regions`` (ordered, byte offsets)."""
    found = _other_markers(text, regions)
    return with_fills(text, found, [NAME] * len(found))


def stood_in(text: bytes, regions: Sequence[Region], language: Language) -> bytes:
    """Return a text with what leaves the fewest errors in place of each marker that is apart from the ``regions``."""
    found = _other_markers(text, regions)
    if not found:
        return text
    texts = [NAME] * len(found)

    def faults(texts: Sequence[str]) -> frozenset[Fault]:
        return tree_faults(language.parser().parse(with_fills(text, found, texts)))

    try:
        left = faults(texts)
        causes = [at for at, one in enumerate(found) if any(_may_cause(text, one.start, fault) for fault in left)]
        for at in causes[:MAX_TRIED]:
            for other in OTHERS:
                tried = [*texts[:at], other, *texts[at + 1 :]]
                if len(now := faults(tried)) < len(left):
                    texts, left = tried, now
    except UnparsableError:  # the constraint reads the same text, and tells
        pass
    return with_fills(text, found, texts)


def _other_markers(text: bytes, regions: Sequence[Region]) -> list[Region]:
    """The regions of the markers of which none of the ``regions`` holds a byte."""
    return [one for one in marked(text) if all(other.end <= one.start or one.end <= other.start for other in regions)]


def _may_cause(text: bytes, at: int, fault: Fault) -> bool:
    """Whether what stands at a marker may cause a fault: that is around it, behind it, or in the next line."""
    return at <= fault.end and text.count(b"\n", at, fault.start) <= 1
