"""Fills the holes of a refactor file by file, in batches of places.

A :class:`FileFill` does no input or output: it yields requests and is sent their results. The caller has them answered
by an engine in this process (:func:`fill_files`) or by the service (:func:`fill_concurrently`).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence

import msgspec

from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, Region
from lacuna_model.core.regions import MAX_GAPS, MAX_SPAN_BYTES
from lacuna_server.console.files import LINE_END
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import Edit, FileEdits, sha256
from lacuna_server.refactor.rewriting.rewrite import Rewrite
from lacuna_server.refactor.soundness import Soundness

Requests = Generator[InfillRequest, InfillResult, None]
DEFAULTS = DecodeOptions()
UNSOUND = "the rewritten place does not parse, or the fill does not keep to its hole"


class RefactorCancelled(LacunaError):
    """The refactor was cancelled, and nothing was written."""


class FileFill:
    """Turns the places of one file into edits.

    Each batch of places is one request. Its text has the templates of the batch with their holes as regions, the new
    text of places that are filled already, and the original text of the others. So the file is complete in every
    request. A batch that fails is split in halves and tried again, down to the place that has no valid fill; that place
    stays as it was. ``max_holes`` bounds the holes of a request; the engine denoises up to ``MAX_GAPS`` at once.
    """

    def __init__(
        self,
        source: Source,
        rewrites: Sequence[Rewrite],
        options: DecodeOptions = DEFAULTS,
        *,
        max_holes: int = MAX_GAPS,
    ) -> None:
        self.source = source
        self.rewrites = tuple(rewrites)
        self._options = options
        self._max_holes = max_holes
        self._soundness = Soundness(source)
        self._texts: dict[int, str] = {}
        self._failures: dict[int, str] = {}

    @property
    def num_settled(self) -> int:
        """The number of places that are filled or have failed."""
        return len(self._texts) + len(self._failures)

    def requests(self) -> Requests:
        """Yields one request after another and expects the result of each; ends when every place is settled.

        Raises RefactorCancelled where a result has the status ``cancelled``.
        """
        waiting = deque(self._batches())
        while waiting:
            batch = waiting.popleft()
            message = yield from self._settle(batch)
            if not message:
                continue
            if len(batch) == 1:
                self._failures[batch[0]] = message
            else:
                half = len(batch) // 2
                waiting.extendleft([batch[half:], batch[:half]])

    def edits(self) -> FileEdits:
        """Returns one edit for every settled place."""
        edits = []
        for index, rewrite in enumerate(self.rewrites):
            edit = Edit(rewrite.start, rewrite.end, self._texts.get(index, ""), rewrite.label, support=rewrite.support)
            if index in self._failures:
                edit = msgspec.structs.replace(edit, status="failed", message=self._failures[index])
            if index in self._texts or index in self._failures:
                edits.append(edit)
        return FileEdits(self.source.path, sha256(self.source.data), self.source.version, tuple(edits))

    def _batches(self) -> list[list[int]]:
        """Returns batches of place indices: first all places without a hole, then as many as fit into one request."""
        plain = [index for index, rewrite in enumerate(self.rewrites) if not rewrite.holes]
        batches = [plain] if plain else []
        batch: list[int] = []
        holes = 0
        for index, rewrite in enumerate(self.rewrites):
            count = len(rewrite.holes)
            if not count:
                continue
            far = batch and rewrite.end - self.rewrites[batch[0]].start > MAX_SPAN_BYTES
            if batch and (far or holes + count > self._max_holes):
                batches.append(batch)
                batch, holes = [], 0
            batch.append(index)
            holes += count
        return [*batches, batch] if batch else batches

    def _settle(self, batch: Sequence[int]) -> Generator[InfillRequest, InfillResult, str]:
        """Fills the places of a batch. Returns the reason where that fails, otherwise ""."""
        text, regions = self._draft(batch)
        fills: list[str] = []
        if regions:
            result = yield InfillRequest(
                text=text,
                regions=tuple(regions),
                path=self.source.path,
                language=self.source.language.name,
                options=self._options,
            )
            if result.status == "cancelled":
                raise RefactorCancelled("cancelled; nothing was written")
            if result.status != "ok":
                return result.message or f"no fill: {result.status}"
            fills = [LINE_END.sub(self.source.newline, fill) for fill in result.fills]
        spans = list(_spans(regions, fills))
        texts = dict(self._texts)
        for index in batch:
            rewrite = self.rewrites[index]
            texts[index] = rewrite.filled(fills[: len(rewrite.holes)])
            del fills[: len(rewrite.holes)]
        edits = [(self.rewrites[index].start, self.rewrites[index].end, texts[index]) for index in sorted(texts)]
        if not self._soundness.holds(edits, spans):
            return UNSOUND
        self._texts = texts
        return ""

    def _draft(self, batch: Sequence[int]) -> tuple[str, list[Region]]:
        """Returns the text with the filled places and this batch's templates, and the batch's holes as regions."""
        data = self.source.data
        out, regions, position = bytearray(), list[Region](), 0
        for index in sorted({*self._texts, *batch}):
            rewrite = self.rewrites[index]
            out += data[position : rewrite.start]
            position = rewrite.end
            for part in rewrite.parts if index in batch else (self._texts[index],):
                if isinstance(part, str):
                    out += part.encode()
                else:
                    regions.append(msgspec.structs.replace(part, start=len(out), end=len(out)))
        return (out + data[position:]).decode(), regions


def _spans(regions: Sequence[Region], fills: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields the byte range of every fill in the filled text."""
    moved = 0
    for region, fill in zip(regions, fills, strict=True):
        length = len(fill.encode())
        yield region.start + moved, region.start + moved + length
        moved += length


def fill_files(
    files: Sequence[FileFill], answer: Callable[[InfillRequest], InfillResult], advance: Callable[[int], None]
) -> None:
    """Fills file after file. ``advance`` gets the number of places that were settled since its last call."""
    for file in files:
        requests, settled = file.requests(), 0
        try:
            request = next(requests)
            while True:
                request = requests.send(answer(request))
                advance(file.num_settled - settled)
                settled = file.num_settled
        except StopIteration:
            advance(file.num_settled - settled)


async def fill_concurrently(
    files: Sequence[FileFill],
    answer: Callable[[InfillRequest], Awaitable[InfillResult]],
    advance: Callable[[int], None],
    *,
    at_once: int = 4,
) -> None:
    """Fills up to ``at_once`` files at the same time; the first error, or a cancelled task, ends all of them."""
    free = asyncio.Semaphore(at_once)

    async def fill_one(file: FileFill) -> None:
        requests, settled = file.requests(), 0
        async with free:
            try:
                request = next(requests)
                while True:
                    request = requests.send(await answer(request))
                    advance(file.num_settled - settled)
                    settled = file.num_settled
            except StopIteration:
                advance(file.num_settled - settled)

    try:
        async with asyncio.TaskGroup() as group:
            for file in files:
                group.create_task(fill_one(file))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
