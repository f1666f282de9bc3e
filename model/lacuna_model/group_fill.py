"""Fills one group of regions that share a window: lays out the context and runs the loop over its fills."""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from lacuna_model.core import regions as region_groups
from lacuna_model.core.constraint import Constraint, Verdict
from lacuna_model.core.context import Layout, WindowChooser, lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, Region, Snapshot, Status
from lacuna_model.decode.candidates import Attempt, Begins, Candidates
from lacuna_model.decode.fill import Fill, shown
from lacuna_model.decode.gate import GapSurroundings, Gate, JudgedFill, Judgement, lines_right
from lacuna_model.diffusion.reading import LoadedDiffusion
from lacuna_model.prior.index import Segment
from lacuna_model.readers import Loaded, opening, reader
from lacuna_model.syntax import allowed_tokens, constraint_for, language_for, scanning
from lacuna_model.tiers import DocumentSession
from lacuna_model.workspace.known_first import KnownFirst
from lacuna_model.workspace.known_names import KnownNames

# Positions of a gap beside its fill, at most: the tokens around it, and masks behind it.
SPARE = 16


@dataclass(frozen=True, slots=True)
class FilledGroup:
    """The end of a group: the verdict on its fills, one a region, and ``others``, the further candidates.

    ``judgements`` say how likely each fill is right, ``cut`` whether one has all the tokens that it may.
    """

    outcome: Status
    verdict: Verdict
    stats: FillStats
    others: tuple[tuple[str, ...], ...] = ()
    judgements: tuple[Judgement, ...] = ()
    cut: bool = False


def fill_group(
    model: Loaded,
    session: DocumentSession,
    request: InfillRequest,
    known: Sequence[Segment],
    deadline: float | None,
    checked: bytes | None = None,
    layout: Layout | None = None,
    gate: Gate | None = None,
    names: Sequence[KnownNames] = (),
    before: tuple[str, ...] = (),
    total: int = 0,
) -> Generator[Snapshot | None, None, FilledGroup]:
    """Fill the regions of a request, which share a window; the generator's value is the end.

    ``known`` are the segments that the prior searches. ``checked`` is the text that the constraint sees (by default the
    request's). ``layout`` is that of a chat; without it, the text around the regions is laid out. A long context is
    encoded in pieces. A pause follows each, so that other requests may run in between. ``gate`` judges open fills.
    ``names`` has, for each region, what says which names of a fill are known. Snapshots show all ``total`` regions of
    which these are a part, behind those that have the fills ``before``.
    Raises RequestError where context and fills need more positions than the model has.
    """
    text, regions, options, tokenizer = request.text.encode(), request.regions, request.options, model.tokenizer
    rest = max(total, len(regions)) - len(before)
    if before or layout is not None:  # what was shown last is of another group, or of an answer that was refused
        yield Snapshot(0, (*before, *[""] * rest), ((),) * (len(before) + rest))
    if layout is None:
        layout = text_layout(text, regions, session.window, model, request)
        session.opening = layout.opening
    room = [region.max_tokens + len(layout.old(gap)) for gap, region in enumerate(regions)]
    _check_room(layout, sum(room) + SPARE * len(regions), model.config.max_positions)
    written = layout.olds or layout.answering  # such a text may have lines of the suffix
    # A text without a path and a language may be code, as in the requests of many clients.
    language = language_for(request.path, request.language)
    has_grammar = language is not None or not (request.path or request.language)
    rules = [None] * len(regions) if written else [*region_groups.stop_rules(text, regions, has_grammar=has_grammar)]
    any_order = isinstance(model, LoadedDiffusion)  # such a model's rows have no text before them
    empty = [
        partial(
            Fill,
            gap,
            most,
            region.min_tokens + bool(gap.prefix),
            rule,
            None if any_order else allowed_tokens(region, gap.prefix, tokenizer),
            indented=bool(rule) and region_groups.is_indented(text[: region.start], text[region.end :]),
        )
        for gap, region, most, rule in zip(layout.gaps, regions, room, rules, strict=True)
    ]
    limited = [replace(one, max_tokens=most) for one, most in zip(regions, room, strict=True)]

    def constraint(begins: Begins) -> Constraint:
        found = constraint_for(
            text if checked is None else checked,
            limited,
            request.path,
            request.language,
            tokenizer,
            syntax=options.syntax,
            open_ended=request.is_open_ended,
            deadline=deadline,
        )
        return KnownFirst(found, names, [*map(len, begins)], tokenizer) if options.names and names else found

    def attempt(begins: Sequence[Begins]) -> Attempt:
        fills = [
            fill(candidate=candidate, begin=begin)
            for candidate, beginning in enumerate(begins)
            for fill, begin in zip(empty, beginning, strict=True)
        ]
        return Attempt(reader(model, session.cache, layout, known, options), fills, [*map(constraint, begins)])

    around = GapSurroundings(text, regions[0])

    def judge(delivered: str, fill: Fill) -> Judgement:
        if gate is not None and request.is_open_ended:
            found = gate.judged(delivered, JudgedFill.of(fill, tokenizer), around)
        else:
            found = lines_right(delivered, fill, tokenizer)
        uses = names[fill.gap.index].uses(delivered) if names else None
        return found.knowing(delivered, uses or ())

    yield from scanning(text if checked is None else checked, regions, language if options.syntax else None)
    candidates = Candidates(attempt, len(regions), tokenizer, request.candidates, judge)
    read = yield from encoded(session.cache.updating(layout, ahead=not request.writes), deadline)
    read = replace(read, constrained=candidates.constrained)
    if not request.writes:
        return FilledGroup("ok", Verdict("ok", None), read)

    def show(seen: Snapshot) -> Snapshot:
        after, shown_to_all = rest - len(regions), dict[str, Any]()
        for name, none in (("fills", ""), ("written", ""), ("slots", ()), ("confidence", ()), ("words", ())):
            if own := getattr(seen, name):
                first = before if none == "" else (none,) * len(before)
                shown_to_all[name] = (*first, *own, *(none,) * after)
        return replace(seen, context_tokens=read.context_tokens, cached_tokens=read.cached_tokens, **shown_to_all)

    end = yield from shown(candidates.denoise(deadline), show)
    fills = end.verdict.fills or ()
    sizes = [len(tokenizer.encode(fill)) for fill in fills]
    return FilledGroup(
        end.outcome,
        end.verdict,
        replace(read, steps=candidates.counts.steps, tokens=sum(sizes), **candidates.counted),
        tuple(found for found in candidates.found[1:] if found != fills),
        candidates.judgements.get(fills, ()),
        any(size >= most - 1 for size, most in zip(sizes, room, strict=False)),
    )


def encoded(encoding: Generator[None, None, FillStats], deadline: float | None) -> Generator[None, None, FillStats]:
    """Encode a context piece by piece, with pauses; the value is what that took.

    No tokens were encoded where the ``deadline`` has passed.
    """
    ms = 0.0
    while True:
        began, counts = time.monotonic(), None
        try:
            next(encoding)
        except StopIteration as end:
            counts = end.value
        ms += (time.monotonic() - began) * 1e3
        if counts is not None or (deadline is not None and time.monotonic() >= deadline):
            return replace(counts or FillStats(), encode_ms=ms)
        yield


def _check_room(layout: Layout, needed: int, max_positions: int) -> None:
    """Raise RequestError where context and fills together need more than ``max_positions`` positions."""
    behind = 0 if layout.header is None else len(layout.header.tokens) + 1
    total = len(layout.opening) + sum(map(len, layout.segments)) + behind + needed
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
