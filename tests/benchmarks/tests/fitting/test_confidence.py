"""The fit of a confidence: how often suggestions of a given log-probability are right."""

import random
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.engine.typed import Typed
from tests.benchmarks.fitting.confidence import fit, fit_main, held_out_documents, recalibrated
from tests.benchmarks.tests.engine.test_typed import DOCUMENTS, FixedFill

from lacuna_model.core.params import InfillRequest, InfillResult
from lacuna_model.core.regions import texts_between
from lacuna_model.decode.confidence import Calibration, Calibrations, fitted, shipped
from training.stored.packages import CorpusError


def suggestions(count: int, truth: Calibration) -> list[Typed]:
    """Suggestions that are right as often as a calibration says."""
    rng = random.Random(0)
    said = [rng.uniform(-8, 0) for _ in range(count)]
    return [
        Typed(
            language="go",
            package="p",
            fill="x",
            truth="x",
            exact=rng.random() < truth.probability(one),
            confidence=fitted(open_ended=True).probability(one),
            ms=1.0,
        )
        for one in said
    ]


def test_the_fit_finds_how_often_suggestions_are_right() -> None:
    truth = Calibration(1.0, 0.8)
    found = fit(suggestions(20_000, truth))
    for said in (-8.0, -4.0, -1.0, 0.0):
        assert found.probability(said) == pytest.approx(truth.probability(said), abs=0.03)


def test_another_calibration_changes_the_confidence_of_a_suggestion() -> None:
    (one,) = suggestions(1, fitted(open_ended=True))
    other = Calibration(-1.0, 1.0)
    assert recalibrated(one, other).confidence == pytest.approx(
        other.probability(fitted(open_ended=True).log_prob(one.confidence))
    )


class HalfRight:
    """A fake engine that answers two of four requests right and with more confidence, and two wrong."""

    name = "knows"

    def __init__(self) -> None:
        self._count = 0

    def fill(self, request: InfillRequest) -> InfillResult:
        self._count += 1
        document = next(one for one in DOCUMENTS if one.language == request.language).text
        before, behind = (part.decode() for part in texts_between(request.text.encode(), request.regions))
        rest = document.removeprefix(before).split("\n")[0].removesuffix(behind.split("\n")[0])
        return FixedFill(rest, 0.5).fill(request) if self._count % 4 < 2 else FixedFill("other", 0.05).fill(request)


def test_a_calibration_is_fitted_and_written_to_a_file(tmp_path: Path) -> None:
    documents = [msgspec.structs.replace(one, package=package) for one in DOCUMENTS for package in ("p", "q")]
    at = tmp_path / "confidence.json"
    done: list[None] = []
    found = fit_main(HalfRight(), documents, at, model="knows", num_cases=60, seed=1, advance=lambda: done.append(None))
    fit_main(HalfRight(), documents, at, model="another", num_cases=60, seed=1)
    written = msgspec.json.decode(at.read_bytes(), type=Calibrations)
    assert written.open == shipped().open | {"knows": written.open["knows"], "another": written.open["knows"]}
    assert written.closed == shipped().closed
    calibration = written.open["knows"]
    assert calibration.slope > 0
    assert len(done) == 60
    assert found[0].shown == 1.0
    assert found[-1].right == 1.0
    assert found[-1].kept == 1.0


def test_without_a_right_suggestion_nothing_is_fitted(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="too few are right"):
        fit_main(FixedFill("other", 0.1), DOCUMENTS, tmp_path / "confidence.json", model="", num_cases=4, seed=0)
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no held-out files"):
        held_out_documents(tmp_path)
