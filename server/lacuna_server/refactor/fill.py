"""Fills the holes of a refactor file by file, in batches of places.

A :class:`FileFill` does no input or output: it yields requests and is sent their results. The caller has them answered
by an engine in this process (:func:`fill_files`) or by the service (:func:`fill_concurrently`).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

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
from lacuna_model.syntax.document import COMPILES
from lacuna_model.syntax.faults import Splice, all_faults, carried_over
from lacuna_model.text import lines
from lacuna_model.text.lines import LINE_END, first_of, splice
from lacuna_server.refactor.journal import sha256
from lacuna_server.refactor.places.source import Source, walk
from lacuna_server.refactor.plan import EditStatus, FileEdits, PlannedEdit
from lacuna_server.refactor.rewriting.rewrite import Excerpts, Rewrite
from lacuna_server.wire.protocol import ServiceError

T = TypeVar("T")
# Gets the number of places that are done since its last call: filled, unsure or failed.
Advance = Callable[[int], None]
DEFAULTS = DecodeOptions()
UNSOUND = "the rewritten place does not parse, or the fill does not keep to its hole"


class Soundness:
    """Compares texts with the original: no new syntax error, and they still compile if the original did.

    A file may parse although a fill has left its hole, as ``3)  # `` before the template's ``)``. So a fill must close
    no bracket that it has not opened, and no text after it may become part of its comment or string.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._faults = all_faults(source.tree, source.data, source.language)
        oracle = COMPILES.get(source.language.name)
        self._oracle = oracle if oracle is not None and oracle(source.data) else None
        self._excerpts = Excerpts(source)
        self._part = self

    def holds_alone(self, start: int, end: int, text: str, fills: Sequence[tuple[int, int]] = ()) -> bool:
        """Returns whether the original with one edit passes, as far as what is near it can tell.

        ``fills`` are byte ranges of ``text``.
        """
        excerpt, moved = self._excerpts.around(start, end)
        if excerpt is not self._part._source:
            self._part = Soundness(excerpt) if excerpt is not self._source else self
        begun = start - moved
        return self._part.holds([(begun, end - moved, text)], [(begun + first, begun + last) for first, last in fills])

    def holds(self, edits: Sequence[tuple[int, int, str]], fills: Sequence[tuple[int, int]] = ()) -> bool:
        """Returns whether the original with these ordered edits passes; ``fills`` are byte ranges of the new text."""
        text = splice(self._source.data, [(start, end, new.encode()) for start, end, new in edits])
        try:
            tree = self._source.language.parser().parse(text)
        except UnparsableError:
            return False
        splices = [Splice(start, end, len(new.encode())) for start, end, new in edits]
        if all_faults(tree, text, self._source.language) - carried_over(self._faults, splices):
            return False
        kept = all(_keeps_to_its_hole(tree.root_node, *fill) for fill in fills)
        return kept and (self._oracle is None or self._oracle(text))


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
        self._soundness = Soundness(source)
        self._done: dict[int, PlannedEdit] = {}

    def requests(self, advance: Advance) -> Generator[InfillRequest, InfillResult, None]:
        """Yields one request after another and expects the result of each; ends when every place is done."""
        plain = [index for index, rewrite in enumerate(self.rewrites) if not rewrite.holes]
        for index in plain:
            self._put(index, self.rewrites[index].filled(()))
        if plain:
            self._confirm()
            advance(len(plain))
        waiting = deque(self._batches())
        while waiting:
            batch = waiting.popleft()
            message = yield from self._fill(batch)
            if message and len(batch) > 1:
                left = [index for index in batch if index not in self._done]
                advance(len(batch) - len(left))
                waiting.extendleft(filter(None, _halves(left)))
                continue
            if message:
                self._put(batch[0], "", "failed", message)
            advance(len(batch))
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

    def others(self, edit: PlannedEdit) -> Generator[InfillRequest, InfillResult, list[PlannedEdit]]:
        """Yields a request for several fills of one place, and returns the edits with those that are sound, best first.

        The fill that ``edit`` has is not among them.
        """
        index = self._index(edit)
        rewrite = self.rewrites[index]
        if not rewrite.holes or rewrite.instruction:
            return []
        text, regions = self._draft([index])
        result = yield self._request(text, regions, FillGaps(MAX_CANDIDATES))
        if result.status != "ok":
            return []
        found = {}
        for candidate in (result.fills, *result.alternatives):
            fills = [LINE_END.sub(self.source.newline, fill) for fill in candidate]
            other = msgspec.structs.replace(edit, new_text=rewrite.filled(fills), confidence=None)
            if other.new_text != edit.new_text and self._holds_alone(index, fills) and self.is_sound(other):
                found[other.new_text] = other
        return list(found.values())

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

    def _fill(self, batch: Sequence[int]) -> Generator[InfillRequest, InfillResult, str]:
        """Fills the places of a batch. Returns the reason where that fails for any of them, otherwise "".

        A request that is refused, such as one for too long a place, fails for its places alone.

        Of several places that are rewritten by an instruction, those that are refused keep their text.
        """
        text, regions = self._draft(batch)
        instruction = self.rewrites[batch[0]].instruction
        try:
            result = yield self._request(text, regions, EditLines(instruction) if instruction else FillGaps())
        except RequestError as error:
            return str(error)
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
        return self._soundness.holds(edits)

    def _holds_alone(self, index: int, fills: Sequence[str]) -> bool:
        rewrite = self.rewrites[index]
        # Lines that an instruction rewrites may open a bracket that closes behind them.
        spans = () if rewrite.instruction else rewrite.spans(fills)
        return self._soundness.holds_alone(rewrite.start, rewrite.end, rewrite.filled(fills), spans)

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


def _refusal(error: LacunaError) -> LacunaError:
    """Returns the error, a RequestError where the service has refused the request for what it is."""
    is_refused = isinstance(error, ServiceError) and error.code in ("bad_request", "too_large")
    return RequestError(str(error)) if is_refused else error


async def _answered(
    requests: Generator[InfillRequest, InfillResult, T], answer: Callable[[InfillRequest], Awaitable[InfillResult]]
) -> T:
    """Answers request after request, and returns the value of the generator, which decides what a refusal means."""
    try:
        request = next(requests)
        while True:
            try:
                result = await answer(request)
            except LacunaError as error:
                request = requests.throw(_refusal(error))
            else:
                request = requests.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


def finished(requests: Generator[InfillRequest, InfillResult, T], answer: Callable[[InfillRequest], InfillResult]) -> T:
    """Answers request after request at once, and returns the value of the generator."""

    async def at_once(request: InfillRequest) -> InfillResult:
        return answer(request)

    try:
        _answered(requests, at_once).send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("nothing is waited for")


def fill_files(files: Sequence[FileFill], answer: Callable[[InfillRequest], InfillResult], advance: Advance) -> None:
    """Fills file after file."""
    for file in files:
        finished(file.requests(advance), answer)


async def fill_concurrently(
    files: Sequence[FileFill],
    answer: Callable[[InfillRequest], Awaitable[InfillResult]],
    advance: Advance,
    *,
    at_once: int = 4,
) -> None:
    """Fills up to ``at_once`` files at the same time; the first error, or a cancelled task, ends all of them."""
    free = asyncio.Semaphore(at_once)

    async def fill_one(file: FileFill) -> None:
        async with free:
            await _answered(file.requests(advance), answer)

    try:
        async with asyncio.TaskGroup() as group:
            for file in files:
                group.create_task(fill_one(file))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
