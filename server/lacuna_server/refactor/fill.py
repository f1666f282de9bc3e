"""Fills the holes of a refactor file by file, in batches of places.

An engine in this process, or the service, answers the requests of one file after another (:func:`fill_files`), or of
several files at the same time (:func:`fill_concurrently`).
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import msgspec
from tree_sitter import Node

from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.core.params import (
    MAX_CANDIDATES,
    DecodeOptions,
    EditLines,
    FillGaps,
    InfillRequest,
    InfillResult,
    Region,
    Task,
)
from lacuna_model.core.regions import MAX_GAPS, MAX_SPAN_BYTES, one_line
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.faults import Splice, carried_over
from lacuna_model.text import lines
from lacuna_model.text.lines import LINE_END, first_of, splice
from lacuna_server.refactor.journal import sha256
from lacuna_server.refactor.places.source import Source, walk
from lacuna_server.refactor.plan import EditStatus, FileEdits, PlannedEdit
from lacuna_server.refactor.rewriting.rewrite import Excerpts, Rewrite
from lacuna_server.wire.protocol import ServiceError

Answer = Callable[[InfillRequest], Awaitable[InfillResult]]
# Gets the number of places that are done since its last call: filled, unsure or failed.
Advance = Callable[[int], None]
DEFAULTS = DecodeOptions()
UNSOUND = "the rewritten place does not parse, or the fill does not keep to its hole"
# Codes of a service that has refused a request for what it is.
REFUSED = frozenset(("bad_request", "too_large"))


def _is_sound(source: Source, edits: Sequence[tuple[int, int, str]], fills: Sequence[tuple[int, int]] = ()) -> bool:
    """Returns whether a text with these ordered edits has no new syntax error, and still compiles if it did.

    A file may parse although a fill has left its hole, as ``3)  # `` before the template's ``)``. So a fill, a byte
    range of the new text, must close no bracket that it has not opened, and no text after it may become part of its
    comment or string.
    """
    text = splice(source.data, [(start, end, new.encode()) for start, end, new in edits])
    made = replace(source, text=text.decode())
    splices = [Splice(start, end, len(new.encode())) for start, end, new in edits]
    try:
        if made.faults - carried_over(source.faults, splices):
            return False
    except UnparsableError:
        return False
    kept = all(_keeps_to_its_hole(made.tree.root_node, *fill) for fill in fills)
    return kept and (not source.compiles or made.compiles)


def _keeps_to_its_hole(root: Node, start: int, end: int) -> bool:
    depth = 0
    for leaf in walk(root, lambda node: node.start_byte < end and start < node.end_byte):
        if leaf.child_count or leaf.start_byte >= end or leaf.end_byte <= start:
            continue
        if start <= leaf.start_byte and leaf.end_byte <= end:
            depth += lines.step(leaf.type)
        elif start <= leaf.start_byte and _swallows(leaf, start):
            return False
        if depth < 0:
            return False
    return depth == 0


def _swallows(leaf: Node, start: int) -> bool:
    """Returns whether a leaf is a comment, or the inside of a string whose opening quote is not before the fill."""
    if "comment" in leaf.type:
        return True
    return leaf.start_byte > start and any(word in leaf.type for word in ("string", "heredoc"))


class FileFill:
    """Turns the places of one file into edits.

    Each batch of places is one request. Its text has the templates of the batch with their holes as regions, the new
    text of places that are filled already, and the original text of the others. So the file is complete in every
    request. A batch that fails is split in halves and tried again, down to the place that has no valid fill; that place
    stays as it was. So does a place whose fills have a lower confidence than ``min_confidence``, and one whose new text
    has a warning.
    """

    def __init__(
        self,
        source: Source,
        rewrites: Sequence[Rewrite],
        options: DecodeOptions = DEFAULTS,
        *,
        min_confidence: float = 0.0,
    ) -> None:
        self.source = source
        self.rewrites = tuple(rewrites)
        self._options = options
        self._min_confidence = min_confidence
        self._excerpts = Excerpts(source)
        self._done: dict[int, PlannedEdit] = {}

    async def fill(self, answer: Answer, advance: Advance) -> None:
        """Fills every place that has holes; the others need no answer."""
        plain = [index for index, rewrite in enumerate(self.rewrites) if not rewrite.holes]
        for index in plain:
            self._put(index, self.rewrites[index].filled(()))
        if plain:
            self._confirm()
            advance(len(plain))
        waiting = deque(self._batches())
        while waiting:
            batch = waiting.popleft()
            message = await self._fill(batch, answer)
            left = [index for index in batch if index not in self._done]
            if len(batch) > 1:
                advance(len(batch) - len(left))
                waiting.extendleft(filter(None, _halves(left)))
                continue
            if left:
                self._put(batch[0], "", "failed", message)
            advance(1)
        if len(plain) < len(self.rewrites):
            self._confirm()

    def edits(self) -> FileEdits:
        """Returns one edit for every place that is done."""
        edits = tuple(self._done[index] for index in sorted(self._done))
        return FileEdits(self.source.path, sha256(self.source.data), self.source.version, edits)

    def _put(
        self, index: int, text: str, status: EditStatus = "ready", message: str = "", confidence: float | None = None
    ) -> None:
        one = self.rewrites[index]
        self._done[index] = PlannedEdit(one.start, one.end, text, one.label, status, message, one.support, confidence)

    @property
    def _texts(self) -> dict[int, str]:
        """The new texts of the places that are to change, by their indices."""
        return {index: edit.new_text for index, edit in self._done.items() if edit.status == "ready"}

    def others(self, edit: PlannedEdit, answer: Callable[[InfillRequest], InfillResult]) -> Iterator[PlannedEdit]:
        """Asks for several fills of one place; yields those that are sound and not that of ``edit``, best first."""
        index, known = self._index(edit), {edit.new_text}
        rewrite = self.rewrites[index]
        if not rewrite.holes or rewrite.instruction:
            return
        text, regions = self._draft([index])
        result = answer(self._request(text, regions, FillGaps(MAX_CANDIDATES)))
        for candidate in (result.fills, *result.alternatives) if result.status == "ok" else ():
            fills = [LINE_END.sub(self.source.newline, fill) for fill in candidate]
            other = msgspec.structs.replace(edit, new_text=rewrite.filled(fills), confidence=None)
            if other.new_text not in known and self._holds_alone(index, fills) and self.is_sound(other):
                known.add(other.new_text)
                yield other

    def is_sound(self, edit: PlannedEdit) -> bool:
        """Returns whether the file with this edit, in place of its own one, and the other edits has no new error."""
        return self._holds(self._texts | {self._index(edit): edit.new_text})

    def _index(self, edit: PlannedEdit) -> int:
        return [(rewrite.start, rewrite.end) for rewrite in self.rewrites].index((edit.start, edit.end))

    def _batches(self) -> list[list[int]]:
        """Returns batches of places with holes, by their indices: as many as fit into one request."""
        batches: list[list[int]] = []
        holes = 0
        for index, rewrite in enumerate(self.rewrites):
            if not rewrite.holes:
                continue
            holes += len(rewrite.holes)
            if not batches or holes > MAX_GAPS or rewrite.end - self.rewrites[batches[-1][0]].start > MAX_SPAN_BYTES:
                batches.append([])
                holes = len(rewrite.holes)
            batches[-1].append(index)
        return batches

    async def _fill(self, batch: Sequence[int], answer: Answer) -> str:
        """Fills the places of a batch. Returns the reason where that fails for any of them, otherwise "".

        A request that is refused, such as one for too long a place, fails for its places alone.

        Of several places that are rewritten by an instruction, those that are refused keep their text.
        """
        text, regions = self._draft(batch)
        instruction = self.rewrites[batch[0]].instruction
        try:
            result = await answer(self._request(text, regions, EditLines(instruction) if instruction else FillGaps()))
        except LacunaError as error:
            if isinstance(error, RequestError) or (isinstance(error, ServiceError) and error.code in REFUSED):
                return str(error)
            raise
        if result.status != "ok":
            return result.message or f"no fill: {result.status}"
        # What is rewritten by an instruction has line ends of its own.
        fills = iter(result.fills if instruction else [LINE_END.sub(self.source.newline, one) for one in result.fills])
        confidence = (lines[-1] if lines else 1.0 for lines in result.confidence)
        filled: list[tuple[int, str, float | None]] = []
        for index in batch:
            rewrite = self.rewrites[index]
            own, known = list(islice(fills, len(rewrite.holes))), list(islice(confidence, len(rewrite.holes)))
            if not self._holds_alone(index, own):
                return UNSOUND
            filled.append((index, rewrite.filled(own), None if instruction else min(known, default=None)))
        message = result.message if instruction and len(batch) > 1 else ""
        warnings = result.warnings if any(result.warnings) else ("",) * len(batch)
        for (index, new, least), why in zip(filled, warnings, strict=True):
            if message and new == self.source.slice(self.rewrites[index].start, self.rewrites[index].end):
                continue
            if not why and least is not None and least < self._min_confidence:
                why = f"the model is unsure: confidence {least:.2g} is below {self._min_confidence:g}"
            self._put(index, new, "unsure" if why else "ready", why, least)
        return message

    def _confirm(self) -> None:
        """Takes the texts back with which the whole file is not sound, by halves."""
        sound: dict[int, str] = {}
        texts = self._texts
        waiting = deque([sorted(texts)])
        while waiting:
            batch = waiting.popleft()
            tried = sound | {index: texts[index] for index in batch}
            if self._holds(tried):
                sound = tried
            elif len(batch) > 1:
                waiting.extendleft(_halves(batch))
        for index in texts.keys() - sound.keys():
            self._put(index, "", "failed", UNSOUND)

    def _holds(self, texts: Mapping[int, str]) -> bool:
        edits = [(self.rewrites[index].start, self.rewrites[index].end, texts[index]) for index in sorted(texts)]
        return _is_sound(self.source, edits)

    def _holds_alone(self, index: int, fills: Sequence[str]) -> bool:
        """Returns whether the original with one place filled passes, as far as what is near it can tell."""
        rewrite = self.rewrites[index]
        # Lines that an instruction rewrites may open a bracket that closes behind them.
        spans = () if rewrite.instruction else rewrite.spans(fills)
        excerpt, moved = self._excerpts.around(rewrite.start, rewrite.end)
        begun = rewrite.start - moved
        edit = (begun, rewrite.end - moved, rewrite.filled(fills))
        return _is_sound(excerpt, [edit], [(begun + first, begun + last) for first, last in spans])

    def _request(self, text: str, regions: Sequence[Region], task: Task) -> InfillRequest:
        return InfillRequest(
            text=text,
            regions=tuple(regions),
            task=task,
            path=self.source.path,
            language=self.source.language.name,
            options=self._options,
        )

    def _draft(self, batch: Sequence[int]) -> tuple[str, list[Region]]:
        """Returns the text with the filled places and this batch's templates, and the batch's holes as regions.

        A hole without a number of lines gets one line if text follows it on its line.
        """
        data = self.source.data
        out, regions, position, texts = bytearray(), list[Region](), 0, self._texts
        for index in sorted({*texts, *batch}):
            rewrite = self.rewrites[index]
            out += data[position : rewrite.start]
            position = rewrite.end
            for part in rewrite.parts if index in batch else (texts[index],):
                if isinstance(part, str):
                    out += part.encode()
                else:
                    standing = data[rewrite.start : rewrite.end] if rewrite.instruction else b""
                    regions.append(msgspec.structs.replace(part, start=len(out), end=len(out) + len(standing)))
                    out += standing
        text = bytes(out + data[position:])
        return text.decode(), [_in_line(region, text) for region in regions]


def _halves(batch: list[int]) -> list[list[int]]:
    """Returns the two halves, the second one first, as they go before what waits."""
    return [batch[len(batch) // 2 :], batch[: len(batch) // 2]]


def _in_line(hole: Region, text: bytes) -> Region:
    if hole.max_lines or hole.regex or not one_line(first_of(text[hole.end :].decode())):
        return hole
    return msgspec.structs.replace(hole, single_line=True)


def fill_files(files: Sequence[FileFill], answer: Callable[[InfillRequest], InfillResult], advance: Advance) -> None:
    """Fills file after file."""

    async def at_once(request: InfillRequest) -> InfillResult:
        return answer(request)

    for file in files:
        with contextlib.suppress(StopIteration):  # its end: nothing is waited for
            file.fill(at_once, advance).send(None)


async def fill_concurrently(
    files: Sequence[FileFill],
    answer: Answer,
    advance: Advance,
    *,
    at_once: int = 4,
) -> None:
    """Fills up to ``at_once`` files at the same time; the first error, or a cancelled task, ends all of them."""
    free = asyncio.Semaphore(at_once)

    async def fill_one(file: FileFill) -> None:
        async with free:
            await file.fill(answer, advance)

    try:
        async with asyncio.TaskGroup() as group:
            for file in files:
                group.create_task(fill_one(file))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
