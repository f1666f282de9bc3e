"""Fits how much each voice of the mixture counts: the likelihood of held-out code under it, maximised."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model import atomic
from lacuna_model.ending import FLOOR, IMPOSSIBLE, end_odds
from lacuna_model.evaluate.held_out_cases import sample_cases
from lacuna_model.evaluate.runner import parses
from lacuna_model.loader import LoadedModel
from lacuna_model.prior.index import Documents, Index
from lacuna_model.prior.proposal import END_TOKENS
from lacuna_model.prior.spans import log_odds
from lacuna_model.prior.weights import MixtureWeights
from lacuna_model.train.documents import Document, read_documents
from lacuna_model.train.logistic import fewest_nats
from lacuna_model.train.observations import Choice, Seen, observe
from lacuna_model.train.packages import CorpusError

MIN_FILES = 5
DEFAULT_CASES = 200
# Every rate begins with half an observation of one end in ten, every probability with this least one.
PRIOR_COUNT, PRIOR_RATE = 0.5, 0.1
LEAST = 1e-6


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
) -> MixtureWeights:
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
    seen: list[Seen | Choice] = []
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


def fit(observed: Sequence[Seen | Choice]) -> MixtureWeights:
    """The numbers under which the mixtures give the truth the greatest likelihood."""
    seen = [one for one in observed if isinstance(one, Seen)]
    may_end = [one for one in seen if one.last and one.end > IMPOSSIBLE]
    drafted = _ends(may_end, [(one.end,) for one in may_end])
    read = [(one, one.following) for one in seen if one.following is not None]
    endable = [(one, following) for one, following in read if one.last and one.end > IMPOSSIBLE]
    guided = _ends([one for one, _ in endable], [(one.end, following) for one, following in endable])
    matched = [(one, one.left) for one in seen if one.left is not None]
    rates = _rates(seen)
    found = [left.under(rates, is_end=one.is_end) for one, left in matched]
    at_frontier = [(one, left.under(rates, is_end=one.is_end)) for one, left in matched if one.following is not None]
    behind = [(one, one.right.under(np.zeros(END_TOKENS + 1), is_end=False)) for one in seen if one.right is not None]
    behind_own = [_own(one, one.draft, drafted, one.end) for one, _ in behind]
    choices = [one for one in observed if isinstance(one, Choice) and one.spans]
    spans = _choosing(choices, [[span.features() for span in choice.spans] for choice in choices])
    return MixtureWeights(
        draft=_coefficients(found, [_own(one, one.draft, drafted, one.end) for one, _ in matched]),
        guided=_coefficients(
            [each for _, each in at_frontier],
            [_own(one, one.guided, guided, one.end, one.following or 0.0) for one, _ in at_frontier],
        ),
        right=_coefficients([each for _, each in behind], behind_own),
        ends=tuple(round(float(rate), 4) for rate in rates),
        spans=spans,
        spoken=_choosing(choices, [_spoken(choice, spans) for choice in choices]),
        drafted_end=(drafted[0], drafted[1]),
        guided_end=(guided[0], guided[1], guided[2]),
    )


def _rates(seen: Sequence[Seen]) -> NDArray[np.float64]:
    """How often a fill ends where so many tokens behind a match are those behind the gap [END_TOKENS + 1]."""
    matched = [(one, one.left) for one in seen if one.left is not None]
    ends = sum((left.places * one.is_end for one, left in matched), np.zeros(END_TOKENS + 1))
    total = sum((left.places for _, left in matched), np.zeros(END_TOKENS + 1))
    return np.asarray((ends + PRIOR_COUNT * PRIOR_RATE) / (total + PRIOR_COUNT))


def _own(one: Seen, share: float, coefficients: Sequence[float], *said: float) -> float:
    """The model's probability of what is true: of the end, or of a token where the fill goes on."""
    end = float(end_odds(coefficients, *map(torch.tensor, said)).exp())
    return end if one.is_end else (1 - end) * share


def _ends(seen: Sequence[Seen], said: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Log-odds of an end by what is ``said`` of every slot: a constant, and what each log-probability counts."""
    inputs = torch.tensor([(1.0, *(max(each, FLOOR) for each in one)) for one in said], dtype=torch.float64)
    wanted = torch.tensor([float(one.is_end) for one in seen], dtype=torch.float64)
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    return fewest_nats(inputs.shape[1], lambda coefficients: loss(inputs @ coefficients, wanted))


def _coefficients(found: Sequence[tuple[NDArray[np.float64], float]], model: Sequence[float]) -> tuple[float, ...]:
    """Logistic coefficients of the weight in ``(1 - w) * model + w * prior``."""
    inputs = torch.tensor(np.array([one for one, _ in found]))
    prior, own = torch.tensor([share for _, share in found]), torch.tensor(model, dtype=torch.float64)

    def loss(coefficients: Tensor) -> Tensor:
        weights = (inputs @ coefficients).sigmoid()
        return -((1 - weights) * own + weights * prior + LEAST).log().mean()

    return fewest_nats(inputs.shape[1], loss)


def _spoken(choice: Choice, coefficients: Sequence[float]) -> list[NDArray[np.float64]]:
    """Features of a choice's spans once the base has read them."""
    odds = log_odds(choice.spans, coefficients)
    return [said.features(own) for said, own in zip(choice.spoken, odds, strict=True)]


def _choosing(choices: Sequence[Choice], features: Sequence[Sequence[NDArray[np.float64]]]) -> tuple[float, ...]:
    """Coefficients of a conditional logit over the spans' ``features``: one of them is the fill, or none is."""
    owner = torch.tensor([number for number, choice in enumerate(choices) for _ in choice.spans])
    inputs = torch.tensor(np.array([each for own in features for each in own]))
    right = torch.tensor([i == choice.right for choice in choices for i in range(len(choice.spans))])

    def loss(coefficients: Tensor) -> Tensor:
        odds = inputs @ coefficients
        total = torch.ones(len(choices), dtype=torch.float64).index_add(0, owner, odds.exp())
        return (total.log().sum() - odds[right].sum()) / len(choices)

    return fewest_nats(inputs.shape[1], loss)
