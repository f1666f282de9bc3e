"""The engine: takes an infill request, yields snapshots and returns the result."""

import time
from collections.abc import Callable, Generator, Sequence

import msgspec

from lacuna_model.backends.choices import weighed
from lacuna_model.backends.readers import Loaded, load, opening, reader
from lacuna_model.core import regions as region_groups
from lacuna_model.core.constraint import Verdict
from lacuna_model.core.context import Layout, UpdateCounts, finished, heal, lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import MAX_CANDIDATES, FillStats, InfillRequest, InfillResult, Region, SlotView, Snapshot
from lacuna_model.core.window import Window, WindowOptions
from lacuna_model.decode.candidates import Attempt, Begins, Candidates, SideBySide
from lacuna_model.decode.canvas import Canvas
from lacuna_model.decode.denoise import Ending, shown
from lacuna_model.hub.models import DEFAULT_MODEL
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.prior.encoding import LineEncoder
from lacuna_model.prior.index import Documents, Segment, Tokens
from lacuna_model.sessions import CACHE_BYTES, Session, Sessions
from lacuna_model.syntax import constraint_for, language_for, stand_ins
from lacuna_model.workspace.snippets_only import snippets_only
from lacuna_model.workspace.workspaces import Workspaces

# Characters before a gap that suffice to find the text that is healed.
HEALED_CHARS = 200


def never() -> bool:
    """A cancel flag that is never set."""
    return False


class Engine:
    """Fills gaps with one loaded model; keeps the contexts of the documents used last, up to ``cache_bytes`` bytes."""

    def __init__(
        self,
        model: Loaded,
        *,
        window: WindowOptions | None = None,
        cache_bytes: int = CACHE_BYTES,
        workspaces: Workspaces | None = None,
    ) -> None:
        self.model = model
        self.workspaces = workspaces or Workspaces(model.tokenizer)
        self._encoder = LineEncoder(model.tokenizer)
        self._snippet_budget = window.snippets if window else WindowOptions().snippets
        self.sessions = Sessions(model, window or WindowOptions(), cache_bytes)

    @classmethod
    def load(
        cls,
        model: str = DEFAULT_MODEL,
        *,
        threads: int = 0,
        device: str = "",
        cache_bytes: int = CACHE_BYTES,
    ) -> "Engine":
        """Load a model by name, or the checkpoint in a folder; raises as :func:`.backends.readers.load` does."""
        return cls(load(model, threads=threads, device=device), cache_bytes=cache_bytes)

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fill every region and return the result."""
        return finished(self.stream(request))

    def stream(
        self, request: InfillRequest, cancelled: Callable[[], bool] = never, *, document: str = ""
    ) -> Generator[Snapshot, None, InfillResult]:
        """Fill every region, yielding the canvas after each step; the generator's value is the result.

        Regions too far apart for one window are filled group after group; each group sees the fills of the earlier
        ones. ``document`` is the key of the context that is kept for later requests (by default the request's path). If
        a language's parser fails on the text, the request is filled without the syntax constraint, and ``message``
        reports that. Raises RequestError for regions that overlap, lie outside the text or cut a character, and for a
        second fill of the same document at the same time.
        """
        if any(region.choices for region in request.regions):
            region_groups.check(request.regions, request.text.encode())
            return (yield from weighed(self.model, request, cancelled))
        try:
            return (yield from self._filled(request, cancelled, document or request.path))
        except UnparsableError as error:  # the caller still gets a fill
            free = msgspec.structs.replace(request.options, syntax=False)
            request = msgspec.structs.replace(request, options=free)
            result = yield from self._filled(request, cancelled, document or request.path)
            return msgspec.structs.replace(result, message=result.message or f"the syntax is not checked: {error}")

    def _filled(
        self, request: InfillRequest, cancelled: Callable[[], bool], document: str
    ) -> Generator[Snapshot, None, InfillResult]:
        """As :meth:`stream`, but raises UnparsableError where the constraint needs a parse and the parser fails."""
        started = time.monotonic()
        text = request.text.encode()
        region_groups.check(request.regions, text)
        if not 1 <= request.candidates <= MAX_CANDIDATES:
            raise RequestError(f"{request.candidates} candidates were asked for; 1 to {MAX_CANDIDATES} are possible")
        deadline = started + request.options.deadline_ms / 1e3 if request.options.deadline_ms else None
        newlines = region_groups.newlines(text, request.regions)
        spaced, regions = region_groups.spaced(text, request.regions, newlines)
        fills: list[str] = []
        confidence: list[tuple[float, ...]] = []
        ending: Ending | None = None
        project = self.workspaces.follow(request.workspace) if request.workspace else None
        if request.options.snippets_only:
            return (yield from snippets_only(request, project, self.model.tokenizer, cancelled, deadline))
        if project is not None and self._snippet_budget and not request.snippets:
            chosen = project.choose(request, self.model.tokenizer, self._snippet_budget)
            request = msgspec.structs.replace(request, snippets=chosen)
        elsewhere = project.segments(request.path) if project is not None else []
        with self.sessions.running(document) as session:
            groups = list(region_groups.grouped(regions))
            # Later groups continue from the fills of the first group, so there is only one candidate.
            candidates = request.candidates if len(groups) == 1 else 1
            others: tuple[tuple[str, ...], ...] = ()
            began = time.monotonic()
            later = self._stand_ins(request, spaced, regions, deadline) if len(groups) > 1 else []
            stats = FillStats(constraint_ms=(time.monotonic() - began) * 1e3)
            for group in groups:
                current, moved = region_groups.moved(spaced, regions, fills, group)
                checked = (
                    region_groups.moved(spaced, regions, fills, group, later[group.stop :])[0] if later else current
                )
                known: list[Segment] = []
                if not request.options.encode_only:
                    here = Documents.index(self._encoded(current, moved), self._encoder.kind)
                    known = [*elsewhere, Segment(here)]
                fill = _GroupFill(self.model, session, request, current, checked, moved, known, candidates, deadline)
                ending = yield from fill.run(len(fills), len(regions), tuple(fills), cancelled)
                stats = _add(stats, fill.stats(ending))
                others = tuple(found for found in fill.others if found != ending.verdict.fills)
                if ending.verdict.fills is None:
                    break
                fills += ending.verdict.fills
                confidence += fill.confidence(ending.verdict.fills)
                if ending.outcome == "deadline":
                    break
        assert ending is not None
        stats = msgspec.structs.replace(stats, ms=(time.monotonic() - started) * 1e3)
        if ending.verdict.fills is None:
            kept = tuple(text[region.start : region.end].decode() for region in request.regions)
            return InfillResult(ending.outcome, request.text, kept, stats, ending.verdict.message)
        fills = list(region_groups.closed(fills, newlines))
        others = tuple(region_groups.closed(other, newlines) for other in others)
        # After a deadline, later groups keep the text that their regions hold.
        confidence += [()] * (len(request.regions) - len(fills))
        fills += [text[region.start : region.end].decode() for region in request.regions[len(fills) :]]
        filled = region_groups.splice(text, request.regions, fills).decode()
        told = ending.verdict.message
        return InfillResult(ending.outcome, filled, tuple(fills), stats, told, others, tuple(confidence))

    def _stand_ins(
        self, request: InfillRequest, text: bytes, regions: Sequence[Region], deadline: float | None
    ) -> list[str]:
        """The texts that the constraint reads in gaps that are not filled yet; empty where it knows no syntax."""
        language = language_for(request.path, request.language) if request.options.syntax else None
        return stand_ins(text, regions, language, self.model.tokenizer, deadline) if language is not None else []

    def _encoded(self, text: bytes, regions: Sequence[Region]) -> dict[str, Tokens]:
        """Encode the open document for the prior: each text between the gaps is a document of its own.

        The healed text before a gap is left out: the fill repeats it, and the prior would otherwise find it as its
        continuation.
        """
        texts = [piece.decode() for piece in region_groups.texts_between(text, regions)]
        for index, piece in enumerate(texts[:-1]):
            _, prefix = heal(piece[-HEALED_CHARS:], self.model.tokenizer)
            texts[index] = piece.removesuffix(prefix.decode())
        return {str(index): self._encoder.encode(piece) for index, piece in enumerate(texts)}


class _GroupFill:
    """Fills one group of regions that share a window: lays out the context and runs the loop over its canvases.

    ``checked`` is the text that the constraint sees; the prior searches the segments in ``known``.
    """

    def __init__(
        self,
        model: Loaded,
        session: Session,
        request: InfillRequest,
        text: bytes,
        checked: bytes,
        regions: Sequence[Region],
        known: Sequence[Segment],
        candidates: int,
        deadline: float | None,
    ) -> None:
        self._deadline = deadline
        self._request = request
        options = request.options
        segments = _segments(text, regions, session.window, model)
        block = model.config.block_size
        layout = lay_out(segments, model.tokenizer, opening(model, request))
        _check_room(layout, sum(region.max_tokens + block for region in regions), model.config.max_positions)
        self._encoding = session.cache.updating(layout, ahead=options.encode_only)
        self._counts = UpdateCounts(total=0, encoded=0)
        self._encode_ms = 0.0
        self._prefixes = [gap.prefix for gap in layout.gaps]
        rules = list(region_groups.stop_rules(text, regions))

        def attempt(begins: Sequence[Begins]) -> Attempt:
            constraints = [
                constraint_for(
                    checked,
                    regions,
                    request.path,
                    request.language,
                    model.tokenizer,
                    syntax=options.syntax,
                    deadline=deadline,
                    prefixes=self._prefixes,
                )
                for _ in begins
            ]
            canvases = [
                Canvas(gap, block, region.max_tokens, region.min_tokens, rule, candidate, begin)
                for candidate, beginning in enumerate(begins)
                for gap, region, rule, begin in zip(layout.gaps, regions, rules, beginning, strict=True)
            ]
            reads = reader(model, session.cache, layout, known, options)
            return Attempt(reads, canvases, SideBySide(constraints, len(regions)))

        self._candidates = Candidates(attempt, len(regions), model.tokenizer, options, candidates)
        self._tokenizer = model.tokenizer

    def run(
        self,
        first: int,
        total: int,
        before: tuple[str, ...],
        cancelled: Callable[[], bool],
    ) -> Generator[Snapshot, None, Ending]:
        """Run the loop; snapshots show all ``total`` regions of the request, and this group's begin at index ``first``.

        A long context is encoded in pieces. A snapshot follows each, so that other requests may run in between.
        """
        deadline = self._deadline
        while self._encode() and not cancelled() and (deadline is None or time.monotonic() < deadline):
            yield Snapshot(0, (*before, *("",) * (total - first)), ((),) * total)
        if self._request.options.encode_only:
            return Ending("cancelled" if cancelled() else "ok", Verdict("ok", None))
        loop = self._candidates.denoise(cancelled, deadline)
        count = len(self._prefixes)
        after = total - first - count

        def show(seen: Snapshot) -> Snapshot:
            fills = map(self._without_prefix, range(count), seen.fills)
            slots = map(self._slots_without_prefix, range(count), seen.slots)
            return msgspec.structs.replace(
                seen,
                fills=(*before, *fills, *("",) * after),
                slots=(*((),) * first, *slots, *((),) * after),
            )

        return (yield from shown(loop, show))

    def _encode(self) -> bool:
        """Encode a piece of the context; return whether another is left."""
        began = time.monotonic()
        try:
            next(self._encoding)
            return True
        except StopIteration as end:
            self._counts = end.value
            return False
        finally:
            self._encode_ms += (time.monotonic() - began) * 1e3

    @property
    def others(self) -> tuple[tuple[str, ...], ...]:
        """The fills of the further candidates, once the loop has ended."""
        return tuple(self._candidates.found[1:])

    def confidence(self, fills: tuple[str, ...]) -> tuple[tuple[float, ...], ...]:
        """For every line of each fill, the probability that the fill is right up to the end of that line."""
        return self._candidates.confidence[fills]

    def stats(self, ending: Ending) -> FillStats:
        """The counts and times of this group."""
        checks = self._candidates.checks
        return FillStats(
            nfe=self._candidates.passes,
            steps=ending.counts.steps,
            tokens=sum(len(self._tokenizer.encode(fill)) for fill in ending.verdict.fills or ()),
            context_tokens=self._counts.total,
            cached_tokens=self._counts.total - self._counts.encoded,
            corrections=ending.counts.corrections,
            vetoes=checks.vetoes,
            deferrals=checks.deferrals,
            encode_ms=self._encode_ms,
            constraint_ms=ending.counts.constraint_ms,
            constrained=self._candidates.constrained,
        )

    def _without_prefix(self, gap: int, fill: str) -> str:
        """A fill without the healed text at its start, which the document already has."""
        data = fill.encode()
        prefix = self._prefixes[gap]
        return data[len(prefix) :].decode("utf-8", errors="ignore") if data.startswith(prefix) else ""

    def _slots_without_prefix(self, gap: int, slots: tuple[SlotView, ...]) -> tuple[SlotView, ...]:
        """Slots without the healed text, so that their texts add up to the fill that is shown."""
        due = self._prefixes[gap].decode()
        shown = []
        for slot in slots:
            text = slot.text.removeprefix(due) if len(slot.text) >= len(due) else ""
            due = due[len(slot.text) :]
            if text:
                shown.append(msgspec.structs.replace(slot, text=text))
        return tuple(shown)


def _check_room(layout: Layout, needed: int, max_positions: int) -> None:
    """Raise RequestError where context and fills together need more than ``max_positions`` positions."""
    total = len(layout.opening) + sum(map(len, layout.segments)) + needed
    if total > max_positions:
        raise RequestError(
            f"{len(layout.gaps)} gap(s) of so many tokens need {total} positions, the model has {max_positions}; "
            "lower max_tokens"
        )


def _segments(text: bytes, regions: Sequence[Region], window: Window, model: Loaded) -> list[str]:
    """The texts between the gaps; the first and the last are cut to the window."""
    texts = region_groups.texts_between(text, regions)
    texts[0] = window.before(texts[0], model.tokenizer)
    texts[-1] = window.after(texts[-1], model.tokenizer)
    return [text.decode() for text in texts]


def _add(total: FillStats, part: FillStats) -> FillStats:
    """The stats of the earlier groups with those of one more group added."""
    sums = {
        name: getattr(total, name) + getattr(part, name)
        for name in FillStats.__struct_fields__
        if name != "constrained"
    }
    return FillStats(**sums, constrained=part.constrained)
