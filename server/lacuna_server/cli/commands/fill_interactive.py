"""``lacuna fill --interactive``: shows the fill of each gap, and asks what to do with it."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MAX_CANDIDATES, InfillRequest, InfillResult
from lacuna_server.console import files, output
from lacuna_server.console.files import Document

QUESTION = "Take it? y: yes, n: keep the gap, r: another fill, e: edit, q: keep this gap and all that follow"
ANSWERS = ["y", "n", "r", "e", "q"]


class Review:
    """The decisions about the gaps of a document; ``fill`` answers a request for another fill."""

    def __init__(
        self,
        document: Document,
        request: InfillRequest,
        fills: Sequence[str],
        fill: Callable[[InfillRequest], InfillResult],
    ) -> None:
        self._document = document
        self._request = request
        self._fills = list(fills)
        self._fill = fill
        self._seen = [{text} for text in fills]

    def text(self) -> str:
        """Asks for each gap; returns the text with the taken fills. Raises RequestError if the input ends."""
        regions, gaps = self._request.regions, self._document.text.encode()
        chosen = [gaps[region.start : region.end].decode() for region in regions]
        for index in range(len(regions)):
            answer = self._decide(index)
            if answer == "q":
                break
            if answer == "y":
                chosen[index] = self._fills[index]
        return files.splice(self._document.text, regions, chosen)

    def _decide(self, index: int) -> str:
        """Shows a gap and asks until it is decided: y, n or q."""
        while True:
            output.print_fill(self._document, [self._request.regions[index]], [self._fills[index]])
            answer = _answer()
            if answer == "r":
                self._fill_again(index)
            elif answer == "e":
                self._fills[index] = edited(self._fills[index], self._document.path.suffix)
            else:
                return answer

    def _fill_again(self, index: int) -> None:
        """Replaces the fill of a gap by one that was not shown yet, with the other gaps as they are filled now."""
        regions = self._request.regions
        rest = [region for region in regions if region != regions[index]]
        others = [fill for region, fill in zip(regions, self._fills, strict=True) if region != regions[index]]
        shift = sum(
            len(fill.encode()) - (region.end - region.start)
            for region, fill in zip(regions[:index], self._fills, strict=False)
        )
        gap = msgspec.structs.replace(
            regions[index], start=regions[index].start + shift, end=regions[index].end + shift
        )
        again = msgspec.structs.replace(
            self._request,
            text=files.splice(self._document.text, rest, others),
            regions=(gap,),
            candidates=min(len(self._seen[index]) + 1, MAX_CANDIDATES),
        )
        result = self._fill(again)
        found = [*result.fills, *(fills[0] for fills in result.alternatives)]
        new = next((text for text in found if text not in self._seen[index]), None)
        if new is None:
            output.say("no other fill was found")
        else:
            self._fills[index] = new
            self._seen[index].add(new)


def _answer() -> str:
    from rich.prompt import Prompt

    try:
        return Prompt.ask(QUESTION, choices=ANSWERS, show_choices=False)
    except EOFError as error:
        raise RequestError("the input ended before every gap was decided; nothing was written") from error


def edited(text: str, suffix: str) -> str:
    """Returns a text as the user leaves it in ``$VISUAL`` or ``$EDITOR``. Raises RequestError if that fails."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
        file = Path(folder) / f"fill{suffix}"
        file.write_bytes(text.encode())
        try:
            subprocess.run([*shlex.split(command), str(file)], check=True)
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            raise RequestError(f"the editor failed: {error}") from error
        found = files.read(file).text
    # Editors end a file with a newline; the fill did not end with one.
    return found.removesuffix("\n") if not text.endswith("\n") else found
