"""The engine: a request in, snapshots and a result out."""

import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import msgspec

from lacuna_model import regions as region_groups
from lacuna_model.canvas import Canvas
from lacuna_model.constraint import Verdict
from lacuna_model.context import Layout, lay_out
from lacuna_model.denoise import Ending, denoise
from lacuna_model.errors import RequestError
from lacuna_model.kv_cache import ContextCache, UpdateCounts
from lacuna_model.loader import LoadedModel, load_model
from lacuna_model.params import FillStats, InfillRequest, InfillResult, Region, SlotView, Snapshot
from lacuna_model.syntax import constraint_for
from lacuna_model.two_sided import TwoSidedModel
from lacuna_model.window import Window, WindowOptions

# Free positions kept in front of *after*, and behind every further gap beyond what its fill may take.
RESERVE = 384
MAX_RESERVE = 1024
MAX_SESSIONS = 4


def never() -> bool:
    """A cancel flag that nobody raises."""
    return False


class Session:
    """What the engine remembers of one document: its window and its context's keys and values."""

    def __init__(self, model: LoadedModel, options: WindowOptions) -> None:
        self.window = Window(options)
        self.cache = ContextCache(model.base, dtype=model.cache_dtype)

    def reserve(self, num_before: int, needed: int) -> int:
        """Free positions behind *before*: what is left of those in use, while that is enough."""
        after = self.cache.stream("after").stream
        left = after.positions[0] - num_before if after.ids else 0
        return left if needed <= left <= MAX_RESERVE else max(RESERVE, needed)


class Engine:
    """Fills gaps with one loaded model; keeps the context of the last few documents."""

    def __init__(self, model: LoadedModel, *, window: WindowOptions | None = None) -> None:
        self.model = model
        self._window = window or WindowOptions()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    @classmethod
    def load(cls, model: str = "smollm2-135m", *, threads: int = 0, path: Path | None = None) -> "Engine":
        """Load a model by name, or a GGUF file at ``path``; raises ModelNotFoundError or WeightsError."""
        return cls(load_model(model, threads=threads, path=path))

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fill every region and return the result."""
        stream = self.stream(request)
        while True:
            try:
                next(stream)
            except StopIteration as end:
                result: InfillResult = end.value
                return result

    def stream(
        self, request: InfillRequest, cancelled: Callable[[], bool] = never
    ) -> Generator[Snapshot, None, InfillResult]:
        """Fill every region, yielding the canvas after each step; the generator's value is the result.

        Regions too far apart for one window are filled group after group, each seeing what the earlier ones became.
        Raises RequestError for regions that overlap, lie outside the text or cut a character.
        """
        started = time.monotonic()
        text = request.text.encode()
        region_groups.check(request.regions, text)
        deadline = started + request.options.deadline_ms / 1e3 if request.options.deadline_ms else None
        fills: list[str] = []
        stats = FillStats()
        ending: Ending | None = None
        for group in region_groups.grouped(request.regions, text):
            current, moved = region_groups.moved(text, request.regions, fills, group)
            fill = _GroupFill(self, request, current, moved)
            ending = yield from fill.run(len(fills), len(request.regions), tuple(fills), cancelled, deadline)
            stats = _add(stats, fill.stats(ending))
            if ending.verdict.fills is None:
                break
            fills += ending.verdict.fills
            if ending.outcome == "deadline":
                break
        assert ending is not None
        stats = msgspec.structs.replace(stats, ms=(time.monotonic() - started) * 1e3)
        if ending.verdict.fills is None:
            kept = tuple(text[region.start : region.end].decode() for region in request.regions)
            return InfillResult(ending.outcome, request.text, kept, stats, ending.verdict.message)
        # A deadline may leave later groups untouched: they keep what they had.
        fills += [text[region.start : region.end].decode() for region in request.regions[len(fills) :]]
        filled = region_groups.splice(text, request.regions, fills).decode()
        return InfillResult(ending.outcome, filled, tuple(fills), stats, ending.verdict.message)

    def session(self, key: str) -> Session:
        """The session of a document, the least recently used one making room for a new one."""
        if key not in self._sessions:
            self._sessions[key] = Session(self.model, self._window)
        self._sessions.move_to_end(key)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return self._sessions[key]


class _GroupFill:
    """One group of regions that share a window: context, canvases, loop."""

    def __init__(self, engine: Engine, request: InfillRequest, text: bytes, regions: Sequence[Region]) -> None:
        self._request = request
        model, options = engine.model, request.options
        session = engine.session(request.path)
        began = time.monotonic()
        segments = _segments(text, regions, session.window, model)
        block = model.config.block_size
        needed = max(region.max_tokens for region in regions) + block
        layout = lay_out(
            segments,
            model.tokenizer,
            reserve=lambda num_before: session.reserve(num_before, needed),
            hole=needed,
            snippets=model.join_snippets(request.snippets),
        )
        _check_room(layout, needed, model.config.max_positions)
        self.counts: UpdateCounts = session.cache.update(layout)
        self.encode_ms = (time.monotonic() - began) * 1e3
        # Healing moves every gap's beginning to the left, by the token that is to be written anew.
        self._healed = [
            msgspec.structs.replace(region, start=region.start - len(gap.prefix))
            for region, gap in zip(regions, layout.gaps, strict=True)
        ]
        self._prefixes = [gap.prefix for gap in layout.gaps]
        self._constraint = constraint_for(
            text, self._healed, request.path, request.language, model.tokenizer, syntax=options.syntax
        )
        self._canvases = [
            Canvas(
                gap, block, region.max_tokens, min_tokens=region.min_tokens, stop=region_groups.stop_rule(text, region)
            )
            for gap, region in zip(layout.gaps, regions, strict=True)
        ]
        self._model = TwoSidedModel(
            model.base,
            model.canvas,
            model.mask_embedding,
            session.cache,
            layout,
            model.prefixes,
            eog_id=model.tokenizer.eog_id,
            guidance=options.guidance,
        )
        self._tokenizer = model.tokenizer

    def run(
        self,
        first: int,
        total: int,
        before: tuple[str, ...],
        cancelled: Callable[[], bool],
        deadline: float | None,
    ) -> Generator[Snapshot, None, Ending]:
        """Run the loop; snapshots show all of the request's regions, of which this group's begin at ``first``."""
        loop = denoise(
            self._model,
            self._canvases,
            self._constraint,
            self._tokenizer,
            self._request.options,
            cancelled=cancelled,
            deadline=deadline,
        )
        after = total - first - len(self._canvases)
        while True:
            try:
                seen = next(loop)
            except StopIteration as end:
                ending: Ending = end.value
                break
            yield Snapshot(
                seen.step,
                (*before, *map(self._without_prefix, range(len(seen.fills)), seen.fills), *("",) * after),
                (*((),) * first, *map(self._slots_without_prefix, range(len(seen.slots)), seen.slots), *((),) * after),
            )
        if ending.verdict.fills is not None:
            fills = tuple(map(self._without_prefix, range(len(self._canvases)), ending.verdict.fills))
            ending.verdict = Verdict(ending.verdict.status, fills, ending.verdict.message)
        return ending

    def stats(self, ending: Ending) -> FillStats:
        """What this group took."""
        passes, checks = self._model.counts, self._constraint.stats
        return FillStats(
            nfe=passes.canvas + passes.base,
            base_nfe=passes.base,
            steps=ending.counts.steps,
            tokens=sum(len(self._tokenizer.encode(fill)) for fill in ending.verdict.fills or ()),
            context_tokens=self.counts.total,
            cached_tokens=self.counts.total - self.counts.encoded,
            corrections=ending.counts.corrections,
            vetoes=checks.vetoes,
            deferrals=checks.deferrals,
            encode_ms=self.encode_ms,
            constraint_ms=checks.ms,
            constrained=self._constraint.active,
        )

    def _without_prefix(self, gap: int, fill: str) -> str:
        """A fill without the healed text in front, which stands in the document already."""
        data = fill.encode()
        prefix = self._prefixes[gap]
        return data[len(prefix) :].decode("utf-8", errors="ignore") if data.startswith(prefix) else ""

    def _slots_without_prefix(self, gap: int, slots: tuple[SlotView, ...]) -> tuple[SlotView, ...]:
        """Slots without the healed text, so that they spell what the fill shows."""
        prefix = self._prefixes[gap].decode()
        if not slots or not slots[0].text.startswith(prefix):
            return slots
        first = msgspec.structs.replace(slots[0], text=slots[0].text.removeprefix(prefix))
        return (first, *slots[1:]) if first.text else slots[1:]


def _check_room(layout: Layout, needed: int, max_positions: int) -> None:
    """Raise RequestError where text and fills together are longer than the model can count."""
    last = max(layout.after.positions[-1], layout.gaps[-1].position + needed)
    if last >= max_positions:
        raise RequestError(
            f"{len(layout.gaps)} gap(s) of so many tokens need {last + 1} positions, the model has {max_positions}; "
            "lower max_tokens"
        )


def _segments(text: bytes, regions: Sequence[Region], window: Window, model: LoadedModel) -> list[str]:
    """The texts between the gaps, the first and the last cut to the window."""
    ends = [0, *(region.end for region in regions)]
    starts = [*(region.start for region in regions), len(text)]
    pieces = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    pieces[0] = window.before(pieces[0], model.tokenizer)
    pieces[-1] = window.after(pieces[-1], model.tokenizer)
    return [piece.decode() for piece in pieces]


def _add(total: FillStats, part: FillStats) -> FillStats:
    """Stats of one more group put to those before."""
    sums = {
        name: getattr(total, name) + getattr(part, name)
        for name in FillStats.__struct_fields__
        if name != "constrained"
    }
    return FillStats(**sums, constrained=part.constrained)
