"""Runs refactorings over texts. Scripted answers replace the model."""

import re
from collections.abc import Callable, Iterable

import msgspec

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region, Status
from lacuna_model.syntax import language_for
from lacuna_server.refactor.fill import FileFill, fill_files
from lacuna_server.refactor.places.gather import by_readings
from lacuna_server.refactor.places.matching import PatternMatch
from lacuna_server.refactor.places.pattern import readings
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import FileEdits
from lacuna_server.refactor.rewriting.refactoring import Refactoring, places


def marked(text: str) -> tuple[str, str]:
    """A text before and after a change: ``«old→new»`` marks what it replaces, ``«new»`` what it adds."""
    mark = re.compile("«(?:([^»]*)→)?([^»]*)»")
    return mark.sub(lambda found: found[1] or "", text), mark.sub(lambda found: found[2], text)


class Scripted:
    """Answers requests as an engine would, with the result of ``fill`` for every hole. It records the requests."""

    def __init__(self, fill: Callable[[Region], str | None] = lambda region: "x") -> None:
        self.fill = fill
        self.sure: Callable[[Region], float] | None = None
        self.requests: list[InfillRequest] = []

    def __call__(self, request: InfillRequest) -> InfillResult:
        self.requests.append(request)
        fills = [self.fill(region) for region in request.regions]
        if any(fill is None for fill in fills):
            return self._result(request, "no_valid_fill", [""] * len(fills))
        result = self._result(request, "ok", [fill for fill in fills if fill is not None])
        if self.sure is None:
            return result
        return msgspec.structs.replace(result, confidence=tuple((1.0, self.sure(region)) for region in request.regions))

    def _result(self, request: InfillRequest, status: Status, fills: list[str]) -> InfillResult:
        return InfillResult(status, tuple(fills), FillStats(), "nothing fits" if status != "ok" else "")


class Bench:
    """Runs refactorings over texts without a disk."""

    def source(self, text: str, name: str = "code.py") -> Source:
        language = language_for(name)
        assert language is not None
        return Source(name, text, language)

    def language(self, name: str) -> str:
        """The name of the language of a file."""
        known = language_for(name)
        return known.name if known is not None else ""

    def matches(self, source: Source, pattern: str) -> list[PatternMatch]:
        """The places of the first readings of a pattern that are found in a source."""
        groups = readings(pattern, source.language)
        return next((found for group in groups if (found := by_readings(source, group))), [])

    def edits(
        self, refactoring: Refactoring, sources: Iterable[Source], answer: Scripted | None = None
    ) -> tuple[list[FileEdits], list[str]]:
        found, left_out = places(refactoring, list(sources))
        fills = [FileFill(source, rewrites) for source, rewrites in found]
        fill_files(fills, answer or Scripted(), lambda done: None)
        return [fill.edits() for fill in fills], left_out

    def apply(self, refactoring: Refactoring, text: str, name: str = "code.py", answer: Scripted | None = None) -> str:
        """The text after the refactoring, which must have a fill for every place."""
        source = self.source(text, name)
        files, _ = self.edits(refactoring, [source], answer)
        assert all(edit.status == "ready" for file in files for edit in file.edits), files
        return files[0].rewritten(source.data).decode() if files else text
