"""Fills one group of regions that share a window: lays out the context and runs the loop over its fills."""

import time
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise

import msgspec

from lacuna_model.backends.readers import Loaded, opening, reader
from lacuna_model.core import regions as region_groups
from lacuna_model.core.constraint import Verdict
from lacuna_model.core.context import Layout, UpdateCounts, lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, Region, SlotView, Snapshot
from lacuna_model.core.window import WindowChooser
from lacuna_model.decode.candidates import Attempt, Begins, Candidates
from lacuna_model.decode.confidence import LEAST, fitted
from lacuna_model.decode.denoise import LoopEnd
from lacuna_model.decode.fill import Fill
from lacuna_model.decode.snapshots import shown
from lacuna_model.diffusion.model import LoadedDiffusion
from lacuna_model.prior.index import Segment
from lacuna_model.sessions import DocumentSession
from lacuna_model.syntax import constraint_for, language_for, token_masks

# Positions of a gap beside its fill, at most: the tokens around it, and masks behind it.
SPARE = 16


class GroupFill:
    """The fill of one group of regions.

    ``checked`` is the text that the constraint sees; the prior searches the segments in ``known``. ``layout`` is that
    of a chat; without it, the text around the regions is laid out.
    """

    def __init__(
        self,
        model: Loaded,
        session: DocumentSession,
        request: InfillRequest,
        text: bytes,
        checked: bytes,
        regions: Sequence[Region],
        known: Sequence[Segment],
        candidates: int,
        deadline: float | None,
        layout: Layout | None = None,
    ) -> None:
        self._deadline = deadline
        self._request = request
        options = request.options
        layout = layout or text_layout(text, regions, session.window, model, request)
        room = [region.max_tokens + len(layout.old(gap)) for gap, region in enumerate(regions)]
        _check_room(layout, sum(room) + SPARE * len(regions), model.config.max_positions)
        self._room = room
        self._encoding = session.cache.updating(layout, ahead=not request.writes)
        self._counts = UpdateCounts(total=0, encoded=0)
        self._encode_ms = 0.0
        self._prefixes = [gap.prefix for gap in layout.gaps]
        written = layout.olds or layout.answering  # such a text may have lines of the suffix
        # A text without a path and a language may be code, as in the requests of many clients.
        named = bool(request.path or request.language)
        has_grammar = not named or language_for(request.path, request.language) is not None
        rules = (
            [None] * len(regions) if written else list(region_groups.stop_rules(text, regions, has_grammar=has_grammar))
        )

        indented = [
            bool(rule) and region_groups.is_indented(text[: one.start], text[one.end :])
            for one, rule in zip(regions, rules, strict=True)
        ]
        any_order = isinstance(model, LoadedDiffusion)  # such a model's rows have no text before them
        masks = [
            None if any_order else token_masks(region, gap.prefix, model.tokenizer)
            for region, gap in zip(regions, layout.gaps, strict=True)
        ]
        limited = [msgspec.structs.replace(one, max_tokens=most) for one, most in zip(regions, room, strict=True)]

        def attempt(begins: Sequence[Begins]) -> Attempt:
            constraints = [
                constraint_for(
                    checked,
                    limited,
                    request.path,
                    request.language,
                    model.tokenizer,
                    syntax=options.syntax,
                    open_ended=request.is_open,
                    deadline=deadline,
                )
                for _ in begins
            ]
            fills = [
                Fill(gap, most, region.min_tokens + bool(gap.prefix), rule, mask, candidate, begin, deep)
                for candidate, beginning in enumerate(begins)
                for gap, region, most, rule, mask, begin, deep in zip(
                    layout.gaps, regions, room, rules, masks, beginning, indented, strict=True
                )
            ]
            reads = reader(model, session.cache, layout, known, options)
            return Attempt(reads, fills, constraints)

        self._calibration = fitted(model.name, open_ended=request.is_open)
        self._candidates = Candidates(attempt, len(regions), model.tokenizer, candidates, self._calibration)
        self._tokenizer = model.tokenizer

    def run(
        self,
        first: int,
        total: int,
        before: tuple[str, ...],
        cancelled: Callable[[], bool],
    ) -> Generator[Snapshot, None, LoopEnd]:
        """Run the loop; snapshots show all ``total`` regions of the request, and this group's begin at index ``first``.

        A long context is encoded in pieces. A snapshot follows each, so that other requests may run in between.
        """
        deadline = self._deadline
        while self._encode() and not cancelled() and (deadline is None or time.monotonic() < deadline):
            yield Snapshot(0, (*before, *("",) * (total - first)), ((),) * total)
        if not self._request.writes:
            return LoopEnd("cancelled" if cancelled() else "ok", Verdict("ok", None))
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
                written=(*before, *seen.written, *("",) * after),
                confidence=(*((),) * first, *seen.confidence, *((),) * after),
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

    def cut(self, fills: Sequence[str]) -> list[bool]:
        """Which fills have all the tokens that they may have, so that they ended before the model ended them."""
        sizes = (len(self._tokenizer.encode(fill)) for fill in fills)
        return [size >= most - 1 for size, most in zip(sizes, self._room, strict=True)]

    def confidence(self, fills: tuple[str, ...]) -> tuple[tuple[float, ...], ...]:
        """For every line of each fill, the probability that the fill is right up to the end of that line."""
        return self._candidates.confidence[fills]

    def log_probs(self, fills: tuple[str, ...]) -> list[tuple[float, ...]]:
        """For every line of each fill, the log-probability (nats) of its tokens, given the lines before it."""
        found = []
        for lines in self._candidates.confidence[fills]:
            sums = [0.0, *map(self._calibration.log_prob, lines)]
            # Of lines after the least sum nothing is known.
            found.append(tuple(LEAST if after <= LEAST + 1 else after - before for before, after in pairwise(sums)))
        return found

    def stats(self, ending: LoopEnd) -> FillStats:
        """The counts and times of this group."""
        checks = self._candidates.checks
        return FillStats(
            nfe=self._candidates.passes,
            steps=ending.counts.steps,
            tokens=sum(len(self._tokenizer.encode(fill)) for fill in ending.verdict.fills or ()),
            context_tokens=self._counts.total,
            cached_tokens=self._counts.total - self._counts.encoded,
            corrections=self._candidates.corrections,
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
        shown: list[SlotView] = []
        for index, slot in enumerate(slots):
            if not due:
                return (*shown, *slots[index:])
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


def text_layout(
    text: bytes, regions: Sequence[Region], window: WindowChooser, model: Loaded, request: InfillRequest
) -> Layout:
    """The layout of the text around the regions, cut to the window, after the request's snippets."""
    texts = region_groups.texts_between(text, regions)
    texts[0] = window.before(texts[0], model.tokenizer)
    texts[-1] = window.after(texts[-1], model.tokenizer)
    heals = not isinstance(model, LoadedDiffusion)
    return lay_out([text.decode() for text in texts], model.tokenizer, opening(model, request), heals=heals)
