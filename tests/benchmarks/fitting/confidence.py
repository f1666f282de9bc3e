"""The command ``fit-confidence``: fits the calibration that turns the model's probabilities into confidences."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import torch
from tests.benchmarks.engine.typed import Shown, Typed, shown, suggest, typed_cases
from tests.benchmarks.fitting.logistic import fewest_nats
from tests.benchmarks.tasks.runner import Filler
from torch.nn.functional import binary_cross_entropy_with_logits

from lacuna_model.decode.confidence import Calibration, Calibrations, fitted, shipped
from lacuna_model.hub import atomic
from training.stored.documents import Document, read_documents
from training.stored.packages import CorpusError


def held_out_documents(corpus: Path) -> list[Document]:
    """Returns the held-out files of a corpus folder in every language; raises CorpusError if there are none."""
    paths = sorted(corpus.glob("*/held_out.jsonl.zst"))
    if not paths:
        raise CorpusError(f"{corpus}: no held-out files; `python -m training corpus` builds the corpus")
    return [document for path in paths for document in read_documents(path)]


def fit_main(
    filler: Filler,
    documents: Sequence[Document],
    out: Path,
    *,
    model: str,
    num_cases: int,
    seed: int,
    advance: Callable[[], None] = lambda: None,
) -> list[Shown]:
    """Suggests in held-out files, fits a ``model``'s calibration on every other package, and writes it to ``out``.

    The calibrations of other models in ``out`` stay. Returns its effect on the remaining packages. Calls ``advance``
    after each case. Raises CorpusError if too few suggestions are right.
    """
    seen: list[Typed] = []
    for case in typed_cases(documents, num_cases, seed):
        suggestion = suggest(case, filler)
        seen += [suggestion] if suggestion.suggested else []
        advance()
    fitting = set(sorted({one.package for one in seen})[::2])
    own = [one for one in seen if one.package in fitting]
    others = [one for one in seen if one.package not in fitting]
    if not (any(one.exact for one in own) and any(one.exact for one in others)):
        raise CorpusError(f"{len(seen)} suggestions, of which too few are right: ask for more cases")
    calibration = fit(own, model)
    known = msgspec.json.decode(out.read_bytes(), type=Calibrations) if out.exists() else shipped()
    fitted_now = msgspec.structs.replace(known, open=known.open | {model: calibration})
    with atomic.replacing(out) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(fitted_now)) + b"\n")
    return shown([recalibrated(one, calibration, model) for one in others])


def fit(suggestions: Sequence[Typed], model: str = "") -> Calibration:
    """Returns the calibration with the highest likelihood for the suggestions."""
    said = torch.tensor(
        [(1.0, fitted(model, open_ended=True).log_prob(one.confidence)) for one in suggestions], dtype=torch.float64
    )
    right = torch.tensor([float(one.exact) for one in suggestions], dtype=torch.float64)
    constant, slope = fewest_nats(2, lambda found: binary_cross_entropy_with_logits(said @ found, right))
    return Calibration(constant, slope)


def recalibrated(suggestion: Typed, calibration: Calibration, model: str = "") -> Typed:
    """Returns the suggestion with the confidence of another calibration."""
    confidence = calibration.probability(fitted(model, open_ended=True).log_prob(suggestion.confidence))
    return msgspec.structs.replace(suggestion, confidence=confidence)
