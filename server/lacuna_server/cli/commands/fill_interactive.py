"""``lacuna fill --interactive``: shows the fill of each gap, and asks what to do with it."""

from collections.abc import Callable, Sequence

import msgspec

from lacuna_model.core import regions
from lacuna_model.core.params import MAX_CANDIDATES, FillGaps, InfillRequest, InfillResult
from lacuna_server import files
from lacuna_server.console import questions, showing
from lacuna_server.files import FileText

Fill = Callable[[InfillRequest], InfillResult]


class Review:
    """The decisions about the gaps of documents, one document after the other; a gap that is not taken stays."""

    def __init__(self) -> None:
        self._key = ""

    @property
    def ended(self) -> bool:
        """Whether the user wants no further gap filled."""
        return self._key == "q"

    def text(self, document: FileText, request: InfillRequest, fills: Sequence[str], fill: Fill) -> str:
        """Asks for each gap of a document; returns its text with the taken fills.

        ``fill`` answers a request for another fill. Raises RequestError if the input ends.
        """
        gaps = Gaps(document, request, fills, fill)
        data = document.text.encode()
        chosen = [*regions.standing(data, request.regions)]
        for index in range(len(chosen)):
            if self._key not in ("a", "q"):
                self._key, gaps.fills[index] = questions.decided(NumberedGap(gaps, index), gaps.fills[index])
            if self._key in ("y", "a"):
                chosen[index] = gaps.fills[index]
        return request.filled(chosen)


class Gaps:
    """The gaps of a document with their present fills."""

    def __init__(self, document: FileText, request: InfillRequest, fills: Sequence[str], fill: Fill) -> None:
        self.document = document
        self.request = request
        self.fills = list(fills)
        self.fill = fill


class NumberedGap:
    """One gap, which the question names by its number."""

    def __init__(self, gaps: Gaps, index: int) -> None:
        self._gaps = gaps
        self._index = index
        self._seen = {gaps.fills[index]}

    def show(self, fill: str) -> None:
        """Prints the fill, on a terminal with the lines around it."""
        showing.print_fill(self._gaps.document, [self._gaps.request.regions[self._index]], [fill])

    def describe(self, fill: str) -> str:
        """Returns the number of the gap and the file."""
        return f"{self._index + 1}/{len(self._gaps.fills)} {self._gaps.document.path}"

    def edit(self, fill: str) -> str:
        """Returns the fill as the user leaves it in an editor."""
        document = self._gaps.document
        return files.adapt_newlines(document, questions.edited(fill, document.path.suffix))

    def other(self, fill: str) -> str | None:
        """Returns a fill that was not shown yet, with the other gaps as they are filled now."""
        gaps, index = self._gaps, self._index
        text, gap = regions.text_for(
            gaps.document.text.encode(),
            gaps.request.regions,
            gaps.fills,
            range(index, index + 1),
            gaps.fills[index + 1 :],
        )
        again = msgspec.structs.replace(
            gaps.request,
            text=text.decode(),
            regions=tuple(gap),
            task=FillGaps(min(len(self._seen) + 1, MAX_CANDIDATES)),
        )
        result = gaps.fill(again)
        found = [*result.fills, *(fills[0] for fills in result.alternatives)]
        new = next((text for text in found if text not in self._seen), None)
        if new is not None:
            self._seen.add(new)
        return new
