import random
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.model import tiny

from lacuna_model.loader import LoadedModel
from lacuna_model.prior.proposal import END_TOKENS
from lacuna_model.prior.spans import Span, Spoken, log_odds, probabilities
from lacuna_model.prior.weights import MixtureWeights
from lacuna_model.train.documents import Document
from lacuna_model.train.observations import Choice, Evidence, Seen
from lacuna_model.train.packages import CorpusError
from lacuna_model.train.prior import fit, fit_main

NOWHERE = np.zeros(END_TOKENS + 1)
UNSPOKEN = Spoken(0.0, 0.0)
HERE = np.array([1.0, *[0.0] * END_TOKENS])


def documents(count: int) -> list[Document]:
    return [
        Document("held", "1", "MIT", f"f{i}.py", "python", (2 * tiny.CODE).replace("Account", f"Account{i}"))
        for i in range(count)
    ]


def seen(*, right: bool, length: int, model: float = 0.3, end: bool = False) -> Seen:
    """A slot whose match of ``length`` has one place, with the right token there or another."""
    evidence = Evidence(length, 1, HERE, HERE if right else NOWHERE, HERE)
    return Seen(end, True, model, model, -9.0, -9.0, evidence, evidence)


FILLER = [
    *(Seen(False, True, 0.5, 0.5, -9.0, -9.0, None, None) for _ in range(50)),
    Choice([Span((1,), 1, 2, 1)], [UNSPOKEN], None),
]


def sigmoid(coefficients: tuple[float, ...], length: int) -> float:
    log_length = np.log2(1 + length)
    return float(1 / (1 + np.exp(-np.dot(coefficients, [1, log_length, 1.0, 1.0, log_length]))))


def test_matches_that_are_right_more_often_are_trusted_more() -> None:
    rng = random.Random(0)
    slots = [seen(right=rng.random() < 0.9, length=20) for _ in range(300)]
    slots += [seen(right=rng.random() < 0.2, length=1) for _ in range(300)]
    weights = fit([*slots, *FILLER])
    for coefficients in (weights.draft, weights.guided, weights.right):
        assert sigmoid(coefficients, 20) > 0.75
        assert sigmoid(coefficients, 1) < 0.25


def test_a_model_that_knows_better_is_trusted_more() -> None:
    rng = random.Random(0)
    right = [rng.random() < 0.5 for _ in range(300)]
    trusted = [
        sigmoid(fit([*(seen(right=each, length=5, model=model) for each in right), *FILLER]).draft, 5)
        for model in (0.1, 0.3, 0.9)
    ]
    assert trusted[0] > trusted[1] > trusted[2]


def test_rates_of_ends_are_those_seen() -> None:
    agreed = np.array([0.0, 0.0, 1.0, *[0.0] * (END_TOKENS - 2)])
    ends = [
        Seen(i % 4 != 0, True, 0.1, 0.1, -1.0, -1.0, Evidence(3, 1, agreed, NOWHERE, agreed), None) for i in range(400)
    ]
    weights = fit([*ends, *FILLER, *(seen(right=True, length=3) for _ in range(400))])
    assert weights.ends[2] == pytest.approx(0.75, abs=0.01)
    assert weights.ends[0] < 0.01


def test_an_end_is_likely_where_it_was_and_certain_signs_count() -> None:
    rng = random.Random(0)
    slots: list[Seen | Choice] = []
    for _ in range(600):
        is_end, canvas = rng.random() < 0.3, rng.uniform(-8, 0)  # the canvas side knows nothing, the base does
        slots.append(Seen(is_end, True, 0.5, 0.5, canvas, -0.2 if is_end else -5.0, None, None))
    weights = fit([*slots, *(seen(right=True, length=3) for _ in range(20)), *FILLER])
    rate, canvas_counts, base_counts = weights.guided_end
    assert abs(canvas_counts) < 0.2 < 0.8 < base_counts
    chance = 1 / (1 + np.exp(-(weights.drafted_end[0] - 4 * weights.drafted_end[1])))
    assert chance == pytest.approx(0.3, abs=0.08)
    assert rate > 0


def test_spans_between_longer_matches_are_trusted_more() -> None:
    rng = random.Random(0)
    choices: list[Seen | Choice] = []
    for _ in range(300):
        spans = [Span((1,), 12, 8, 1, 2), Span((2,), 2, 2, 1, 2)]
        choices.append(Choice(spans, [UNSPOKEN] * 2, rng.choices((0, 1, None), (70, 5, 25))[0]))
    weights = fit([*choices, *FILLER, *(seen(right=True, length=3) for _ in range(20))])
    assert probabilities(log_odds(spans, weights.spans)) == pytest.approx([0.7, 0.05], abs=0.06)


def test_spans_that_the_base_would_write_are_trusted_more() -> None:
    rng = random.Random(0)
    span, choices = Span((1, 2), 4, 4, 1), list[Seen | Choice]()
    for _ in range(300):
        likely = rng.random() < 0.5
        spoken = Spoken(-0.2, 0.0) if likely else Spoken(-4.0, -9.0)
        choices.append(Choice([span], [spoken], 0 if rng.random() < (0.8 if likely else 0.1) else None))
    weights = fit([*choices, *FILLER, *(seen(right=True, length=3) for _ in range(20))])
    (alone,) = log_odds([span], weights.spans)
    read = [Spoken(-0.2, 0.0).features(alone), Spoken(-4.0, -9.0).features(alone)]
    assert [probabilities([np.dot(weights.spoken, one)])[0] for one in read] == pytest.approx([0.8, 0.1], abs=0.07)


def test_fits_a_tiny_model_and_writes_the_numbers(model: LoadedModel, tmp_path: Path) -> None:
    out, steps = tmp_path / "weights.json", []
    weights = fit_main(model, documents(5), out, num_cases=6, seed=0, advance=lambda: steps.append(1))
    assert msgspec.json.decode(out.read_bytes(), type=MixtureWeights) == weights
    assert len(steps) == 6
    assert len(weights.draft) == len(weights.guided) == len(weights.right) == 5
    assert (len(weights.spans), len(weights.spoken)) == (7, 4)
    assert all(0 <= rate <= 1 for rate in weights.ends)


def test_too_few_files_are_refused(model: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="files"):
        fit_main(model, documents(2), tmp_path / "weights.json", num_cases=3, seed=0)
