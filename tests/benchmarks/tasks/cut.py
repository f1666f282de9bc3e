"""The simplest constraint, as a baseline: fills without one, checked once at the end and cut to their valid lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from msgspec.structs import replace
from tests.benchmarks.tasks.runner import Filler

from lacuna_model.core import regions as region_groups
from lacuna_model.core.params import InfillRequest, InfillResult, Region
from lacuna_model.syntax import Document, language_for

MAX_CHECKED = 512  # sets of cut fills: two gaps of twenty lines


@dataclass(slots=True)
class CutFiller:
    """Another engine whose fills are cut to the most whole lines with which the file is valid.

    Where none is valid, not even an empty fill, the result is ``no_valid_fill``.
    """

    name: str
    filler: Filler

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request."""
        result = self.filler.fill(request)
        language = language_for(request.path, request.language)
        if result.status != "ok" or language is None:
            return result
        text, regions = request.text.encode(), request.regions
        document = Document(text, [(region.start, region.end) for region in regions], language)
        fills = kept(text, regions, result.fills, document)
        if fills is None:
            standing = region_groups.standing(text, regions)
            message = "no line of the fills is valid"
            return replace(result, status="no_valid_fill", fills=standing, message=message)
        return replace(result, fills=fills)


def kept(text: bytes, regions: Sequence[Region], fills: Sequence[str], document: Document) -> tuple[str, ...] | None:
    """Returns the fills, or what is valid of them with the fewest lines cut off; None for nothing."""
    cuts = [list(_cuts(fill, text[region.end :])) for region, fill in zip(regions, fills, strict=True)]
    ways = sorted(product(*(range(len(own)) for own in cuts)), key=sum)
    for way in islice(ways, MAX_CHECKED):
        found = tuple(own[number] for own, number in zip(cuts, way, strict=True))
        if document.check_fresh([fill.encode() for fill in found]).valid:
            return found
    return None


def _cuts(fill: str, after: bytes) -> Iterator[str]:
    """A fill, and the fill with ever fewer lines; the last one keeps its newline unless the suffix begins with one."""
    yield fill
    ends_line = after.startswith((b"\n", b"\r"))
    lines = fill.splitlines(keepends=True)
    for number in range(len(lines) - 1, -1, -1):
        whole = "".join(lines[:number])
        if (cut := whole.removesuffix("\n") if ends_line else whole) != fill:
            yield cut
