"""What model and project say of gaps in held-out files, slot by slot: the data that the mixture is fitted on."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model.canvas import Canvas
from lacuna_model.context import Gap, heal, lay_out
from lacuna_model.ending import IMPOSSIBLE, RULED_OUT
from lacuna_model.evaluate.held_out_cases import Case
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.params import DecodeOptions
from lacuna_model.prior.canvas_prior import beside
from lacuna_model.prior.index import Documents, Index, Segment
from lacuna_model.prior.matching import Match, match_left, match_right
from lacuna_model.prior.proposal import END_TOKENS, agreement, features
from lacuna_model.prior.spans import Span, Spoken, find_spans
from lacuna_model.regions import pieces
from lacuna_model.two_sided import TwoSidedModel
from lacuna_model.window import Window, WindowOptions

# Short windows: what is fitted is how much each voice counts, and encoding is what takes the time.
WINDOW = WindowOptions(before=224, after=96)
RESERVE = 384
READINGS = 6

Agreement = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A match beside a slot: shares of its places by how far they agree with the text behind the gap [END_TOKENS + 1].

    Of all places, of those with the true token, and of those with the most frequent one.
    """

    length: int
    count: int
    places: Agreement
    true: Agreement
    top: Agreement

    def under(self, rates: Agreement, *, is_end: bool) -> tuple[NDArray[np.float64], float]:
        """Features of the proposal that it makes, and the share of what is true, where fills end at ``rates``."""
        end = float(self.places @ rates)
        purity = max(float(self.top @ (1 - rates)), end)
        return features(self.length, self.count, purity), end if is_end else float(self.true @ (1 - rates))


@dataclass(frozen=True, slots=True)
class Seen:
    """One open slot: what the model says of it, and the matches beside it.

    ``draft`` and ``guided`` are the probabilities of the true token where the fill goes on here, by the canvas side
    and guided by the base. ``end`` is the log-probability of an end by the canvas side; ``following`` that of the text
    behind the gap by the base, None where the canvas side saw masks in front of the slot. ``last``: nothing behind it
    was committed, which would tell that the fill goes on.
    """

    is_end: bool
    last: bool
    draft: float
    guided: float
    end: float
    following: float | None
    left: Evidence | None
    right: Evidence | None


@dataclass(frozen=True, slots=True)
class Choice:
    """The spans that the project has for a fill, what the base says of each, and which of them is right."""

    spans: Sequence[Span]
    spoken: Sequence[Spoken]
    right: int | None


@torch.inference_mode()
def observe(model: LoadedModel, case: Case, index: Index, rng: random.Random) -> Iterator[Seen | Choice]:
    """The open slots of a case's gaps, read with the truth in some of the slots beside them, and the spans for them."""
    tokenizer = model.tokenizer
    texts = [piece.decode() for piece in pieces(case.request.text.encode(), case.request.regions)]
    healed = [text.removesuffix(heal(text, tokenizer)[1].decode()) for text in texts[:-1]]
    here = Documents.index({str(i): tokenizer.encode(text) for i, text in enumerate([*healed, texts[-1]])}, index.kind)
    segments = [*index.segments(case.path), Segment(here)]
    window = Window(WINDOW)
    texts[0] = window.before(texts[0].encode(), tokenizer).decode()
    texts[-1] = window.after(texts[-1].encode(), tokenizer).decode()
    layout = lay_out(texts, tokenizer, reserve=lambda _: RESERVE, hole=RESERVE)
    cache = ContextCache(model.base, dtype=model.cache_dtype)
    cache.update(layout)
    truths = [
        [*tokenizer.encode(gap.prefix.decode() + truth), tokenizer.eog_id]
        for gap, truth in zip(layout.gaps, case.truths, strict=True)
    ]
    for _ in range(READINGS):
        reader = TwoSidedModel(model, cache, layout, guidance=DecodeOptions().guidance)
        frontiers = [rng.randrange(len(truth)) for truth in truths]
        canvases = [
            _partly_filled(gap, truth, first, model.config.block_size)
            for gap, truth, first in zip(layout.gaps, truths, frontiers, strict=True)
        ]
        if any(canvas.done for canvas in canvases):
            reader.finish_block(canvases)
        for canvas, truth, first in zip(canvases, truths, frontiers, strict=True):
            _open_block(canvas, truth, first - len(canvas.done), rng)
        drafts = [reader.restrict(*pair) for pair in zip(canvases, reader.draft(canvases), strict=True)]
        inputs = [
            [*truth[len(canvas.done) :], *canvas.slots][: len(canvas.slots)]
            for canvas, truth in zip(canvases, truths, strict=True)
        ]
        said = reader.verify(canvases, [[tokenizer.eog_id if t is None else t for t in line] for line in inputs])
        for number, canvas in enumerate(canvases):
            slots = _Slots(canvas, truths[number], *beside(layout, number), segments, tokenizer.eog_id)
            yield slots.choice(reader, drafts[number])
            yield from slots.read(reader, drafts[number], said[number], layout.after.ids[0])


def _partly_filled(gap: Gap, truth: Sequence[int], first: int, block_size: int) -> Canvas:
    """A canvas with the blocks finished that end before slot ``first``."""
    start = first // block_size * block_size
    return Canvas(gap, block_size, budget=len(truth), done=list(truth[:start]))


def _open_block(canvas: Canvas, truth: Sequence[int], first: int, rng: random.Random) -> None:
    """Open the next block, with the truth in its first slots and now and then in its last."""
    block = truth[len(canvas.done) :][: canvas.block_size]
    canvas.slots = [None] * canvas.block_size
    canvas.slots[:first] = block[:first]
    if first + 1 < len(block) and rng.random() < 0.5:
        last = rng.randrange(first + 1, len(block))
        canvas.slots[last : len(block)] = block[last:]
        if len(block) < canvas.block_size:  # an end-of-gap cuts the block
            del canvas.slots[len(block) :]


@dataclass(frozen=True, slots=True)
class _Slots:
    """The slots of one canvas, what is true of them and what stands beside the gap."""

    canvas: Canvas
    truth: Sequence[int]
    left: Sequence[int]
    after: Sequence[int]
    segments: Sequence[Segment]
    end_id: int

    def choice(self, reader: TwoSidedModel, logits: Tensor) -> Choice:
        """The spans for what is left of the fill, from the first open slot on."""
        written = self.canvas.tokens()
        spans = find_spans(self.segments, [*self.left, *written], self.after, self._allowed(logits))
        rest = tuple(self.truth[len(written) : -1])
        spoken = reader.says(self.canvas, [span.tokens for span in spans]) if spans else []
        return Choice(spans, spoken, next((i for i, span in enumerate(spans) if span.tokens == rest), None))

    def read(self, reader: TwoSidedModel, logits: Tensor, said: Tensor, document_id: int) -> Iterator[Seen]:
        """The open slots from the frontier on, each given that those in front of it hold the truth."""
        canvas, first, done = self.canvas, self.canvas.frontier, len(self.canvas.done)
        ends = logits.log_softmax(-1)[:, self.end_id]
        logits = logits.index_fill(1, torch.tensor([self.end_id], device=logits.device), RULED_OUT)
        rows = logits.log_softmax(-1)
        following = self.after[0] if self.after else document_id
        for slot in range(first, min(len(canvas.slots), len(self.truth) - done)):
            if canvas.slots[slot] is not None:
                return
            at = done + slot
            true, base = self.truth[at], said[slot - first]
            allowed = self._allowed(logits) if at == 0 else None
            if allowed is not None:
                base = base.masked_fill(rows[0] <= IMPOSSIBLE, RULED_OUT)
            guided = reader.mix(rows[slot], base, slot - first)
            guided[self.end_id] = RULED_OUT
            match = match_left(self.segments, [*self.left, *self.truth[:at]], allowed)
            right = self._right(at) if slot + 1 < len(canvas.slots) and canvas.slots[slot + 1] is not None else None
            yield Seen(
                is_end=true == self.end_id,
                last=not any(token is not None for token in canvas.slots[slot:]),
                draft=float(rows[slot, true].exp()),
                guided=float(guided.log_softmax(-1)[true].exp()),
                end=float(ends[slot]),
                following=float(base.log_softmax(-1)[following]) if slot == first else None,
                left=_evidence(match, true, self.after) if match else None,
                right=_evidence(right, true, ()) if right else None,
            )

    def _allowed(self, logits: Tensor) -> NDArray[np.bool_] | None:
        """What the fill may begin with, where nothing is written yet and its beginning is given."""
        canvas = self.canvas
        at_start = bool(canvas.gap.prefix) and not canvas.done and canvas.frontier == 0
        return (logits[0] > IMPOSSIBLE).numpy(force=True) if at_start else None

    def _right(self, at: int) -> Match | None:
        """The match of what stands behind a place of the fill."""
        behind = self.truth[at + 1 :]
        return match_right(self.segments, [*behind[:-1], *self.after])


def _evidence(match: Match, true: int, after: Sequence[int]) -> Evidence:
    """What a match says where ``true`` is the right token and ``after`` stands behind the gap."""
    tokens, agreed = match.tokens(), agreement(match, after)
    ids, counts = np.unique(tokens, return_counts=True)

    def shares(chosen: NDArray[np.bool_]) -> Agreement:
        return np.bincount(agreed[chosen], minlength=END_TOKENS + 1) / match.count

    return Evidence(
        match.length,
        match.count,
        shares(np.ones(match.count, dtype=bool)),
        shares(tokens == true),
        shares(tokens == ids[counts.argmax()]),
    )
