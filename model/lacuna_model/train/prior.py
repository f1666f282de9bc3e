"""Fits how much the workspace prior counts: the likelihood of held-out code under the mixture, maximised."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model import atomic
from lacuna_model.canvas import Canvas
from lacuna_model.context import Gap, lay_out
from lacuna_model.evaluate.held_out_cases import Case, sample_cases
from lacuna_model.evaluate.runner import parses
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel
from lacuna_model.params import DecodeOptions
from lacuna_model.prior.canvas_prior import IMPOSSIBLE, beside
from lacuna_model.prior.index import Documents, Index, Segment
from lacuna_model.prior.matching import Match, match_left, match_right
from lacuna_model.prior.proposal import END_TOKENS, agreement, features
from lacuna_model.prior.weights import PriorWeights
from lacuna_model.regions import pieces
from lacuna_model.train.documents import Document, read_documents
from lacuna_model.train.packages import CorpusError
from lacuna_model.two_sided import TwoSidedModel
from lacuna_model.window import Window, WindowOptions

# Short windows: what is fitted is the prior's weight, not the model, and encoding is what takes the time.
WINDOW = WindowOptions(before=224, after=96)
RESERVE = 384
READINGS = 3
MIN_FILES = 5
# Every rate begins with half an observation of one end in ten, every probability with this floor.
PRIOR_COUNT, PRIOR_RATE = 0.5, 0.1
FLOOR = 1e-6
# A pull towards zero on all coefficients but the constant.
SHRINKAGE = 1e-3

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
    """One open slot: the probability of what is true by the canvas side and guided, and the matches beside it."""

    is_end: bool
    draft: float
    guided: float
    left: Evidence | None
    right: Evidence | None


def held_out_documents(corpus: Path) -> list[Document]:
    """The held-out Python files of a corpus folder that parse; raises CorpusError where it is damaged."""
    path = corpus / "python" / "held_out.jsonl.zst"
    return [document for document in read_documents(path) if parses(document.text)]


def fit_main(
    model: LoadedModel,
    documents: Sequence[Document],
    out: Path,
    *,
    num_cases: int,
    seed: int,
    advance: Callable[[], None] = lambda: None,
) -> PriorWeights:
    """``lacuna train prior``: observe gaps in held-out packages, fit, and write the numbers to ``out``.

    ``advance`` is called after each case. Raises CorpusError where no package is large enough.
    """
    packages: dict[str, list[Document]] = {}
    for document in documents:
        packages.setdefault(document.package, []).append(document)
    usable = {name: own for name, own in packages.items() if len(own) >= MIN_FILES}
    if not usable:
        raise CorpusError(f"no held-out package has {MIN_FILES} files")
    rng = random.Random(seed)
    seen: list[Seen] = []
    for own in usable.values():
        index = Index.for_vocabulary(model.tokenizer.vocab_size)
        texts = {document.path: document.text for document in own}
        encoded = model.tokenizer.encode_batch(list(texts.values()))
        index.settle(Documents.index(dict(zip(texts, encoded, strict=True)), index.kind))
        for case in sample_cases(own, -(-num_cases // len(usable)), seed):
            seen += observe(model, case, index, rng)
            advance()
    weights = fit(seen)
    with atomic.replacing(out) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(weights)) + b"\n")
    return weights


@torch.inference_mode()
def observe(model: LoadedModel, case: Case, index: Index, rng: random.Random) -> Iterator[Seen]:
    """The open slots of a case's gaps, read with the truth in some of the slots beside them."""
    tokenizer = model.tokenizer
    texts = [piece.decode() for piece in pieces(case.request.text.encode(), case.request.regions)]
    here = Documents.index({str(i): tokenizer.encode(text) for i, text in enumerate(texts)}, index.kind)
    segments = [*index.segments(case.path), Segment(here)]
    window = Window(WINDOW)
    texts[0] = window.before(texts[0].encode(), tokenizer).decode()
    texts[-1] = window.after(texts[-1].encode(), tokenizer).decode()
    layout = lay_out(texts, tokenizer, reserve=lambda _: RESERVE, hole=RESERVE)
    cache = ContextCache(model.base, dtype=model.cache_dtype)
    cache.update(layout)
    reader = TwoSidedModel(
        model.base,
        model.canvas,
        model.mask_embedding,
        cache,
        layout,
        model.prefixes,
        eog_id=tokenizer.eog_id,
        guidance=DecodeOptions().guidance,
    )
    truths = [
        [*tokenizer.encode(gap.prefix.decode() + truth), tokenizer.eog_id][: model.config.block_size]
        for gap, truth in zip(layout.gaps, case.truths, strict=True)
    ]
    for _ in range(READINGS):
        canvases = [_partly_filled(gap, truth, rng) for gap, truth in zip(layout.gaps, truths, strict=True)]
        drafts = [reader.restrict(*pair) for pair in zip(canvases, reader.draft(canvases), strict=True)]
        said = reader.verify(canvases, truths)
        for number, canvas in enumerate(canvases):
            slots = _Slots(canvas, truths[number], *beside(layout, number), segments, tokenizer.eog_id)
            yield from slots.read(reader, drafts[number], said[number])


def _partly_filled(gap: Gap, truth: Sequence[int], rng: random.Random) -> Canvas:
    """A canvas as long as the truth, with its beginning committed and now and then its end as well."""
    canvas = Canvas(gap, len(truth), len(truth))
    canvas.open_block()
    first = rng.choice((0, rng.randrange(len(truth))))
    canvas.slots[:first] = truth[:first]
    last = rng.choice((len(truth), rng.randrange(first + 1, len(truth) + 1)))
    canvas.slots[last:] = truth[last:]
    return canvas


@dataclass(frozen=True, slots=True)
class _Slots:
    """The slots of one canvas, what is true of them and what stands beside the gap."""

    canvas: Canvas
    truth: Sequence[int]
    left: Sequence[int]
    after: Sequence[int]
    segments: Sequence[Segment]
    end_id: int

    def read(self, reader: TwoSidedModel, logits: Tensor, said: Tensor) -> Iterator[Seen]:
        """The open slots from the frontier on, each given that those in front of it hold the truth."""
        canvas, first = self.canvas, self.canvas.frontier
        rows = logits.log_softmax(-1)
        healed = first == 0 and canvas.gap.prefix
        allowed = (rows[0] > IMPOSSIBLE).numpy(force=True) if healed else None
        for slot in range(first, len(self.truth)):
            if canvas.slots[slot] is not None:
                return
            true = self.truth[slot]
            base = said[slot - first]
            if slot == 0 and healed:
                base = base.masked_fill(rows[0] <= IMPOSSIBLE, -torch.inf)
            guided = reader.mix(logits[slot], base, slot - first)
            match = match_left(self.segments, [*self.left, *self.truth[:slot]], None if slot else allowed)
            behind = self.truth[slot + 1 :]
            if self.end_id in behind:
                behind = [*behind[:-1], *self.after]
            is_next = slot + 1 < len(self.truth) and canvas.slots[slot + 1] is not None
            right = match_right(self.segments, behind) if is_next and behind else None
            yield Seen(
                is_end=true == self.end_id,
                draft=float(rows[slot, true].exp()),
                guided=float(guided[true].exp()),
                left=_evidence(match, true, self.after) if match else None,
                right=_evidence(right, true, ()) if right else None,
            )


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


def fit(seen: Sequence[Seen]) -> PriorWeights:
    """The numbers under which the mixtures give the truth the greatest likelihood."""
    matched = [(one, one.left) for one in seen if one.left is not None]
    ends = sum((left.places * one.is_end for one, left in matched), np.zeros(END_TOKENS + 1))
    total = sum((left.places for _, left in matched), np.zeros(END_TOKENS + 1))
    rates = (ends + PRIOR_COUNT * PRIOR_RATE) / (total + PRIOR_COUNT)
    found = [left.under(rates, is_end=one.is_end) for one, left in matched]
    behind = [(one, one.right.under(np.zeros(END_TOKENS + 1), is_end=False)) for one in seen if one.right is not None]
    return PriorWeights(
        draft=_coefficients(found, [one.draft for one, _ in matched]),
        guided=_coefficients(found, [one.guided for one, _ in matched]),
        right=_coefficients([each for _, each in behind], [one.draft for one, _ in behind]),
        ends=tuple(round(float(rate), 4) for rate in rates),
    )


def _coefficients(found: Sequence[tuple[NDArray[np.float64], float]], model: Sequence[float]) -> tuple[float, ...]:
    """Logistic coefficients of the weight in ``(1 - w) * model + w * prior``, by maximum likelihood."""
    inputs = torch.tensor(np.array([one for one, _ in found]))
    prior, own = torch.tensor([share for _, share in found]), torch.tensor(model, dtype=torch.float64)
    coefficients = torch.zeros(inputs.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([coefficients], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        weights = (inputs @ coefficients).sigmoid()
        likelihood = (1 - weights) * own + weights * prior
        value: Tensor = -(likelihood + FLOOR).log().mean() + SHRINKAGE * coefficients[1:].square().sum()
        value.backward()  # type: ignore[no-untyped-call]  # torch leaves it so
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]  # torch leaves it so
    return tuple(round(value, 4) for value in coefficients.tolist())
