import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.train.calibration import Calibration, expected_error, pooled

predictions = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def counted(given: list[tuple[float, bool]]) -> Calibration:
    calibration = Calibration()
    calibration.add(np.array([one for one, _ in given]), np.array([one for _, one in given]))
    return calibration


@given(predictions)
def test_bins_hold_every_prediction_once(given: list[tuple[float, bool]]) -> None:
    bins = counted(given).bins()
    assert sum(one.slots for one in bins) == len(given)
    assert sum(one.slots * one.confidence for one in bins) == pytest.approx(sum(one for one, _ in given))
    assert sum(one.slots * one.accuracy for one in bins) == pytest.approx(sum(one for _, one in given))
    assert 0 <= expected_error(bins) <= 1


@given(predictions, predictions)
def test_bins_taken_together_are_those_of_all_predictions(
    first: list[tuple[float, bool]], second: list[tuple[float, bool]]
) -> None:
    together = pooled([counted(first).bins(), counted(second).bins()])
    everything = counted(first + second).bins()
    assert [(one.slots, round(one.accuracy, 6)) for one in together] == [
        (one.slots, round(one.accuracy, 6)) for one in everything
    ]
    assert expected_error(together) == pytest.approx(expected_error(everything))


def test_a_model_as_sure_as_it_is_right_has_no_error() -> None:
    calibration = Calibration()
    calibration.add(np.full(10, 0.7), np.arange(10) < 7)
    assert expected_error(calibration.bins()) == pytest.approx(0)
    calibration.add(np.full(10, 1.0), np.zeros(10, dtype=np.bool_))
    assert expected_error(calibration.bins()) == pytest.approx(0.5)
    assert expected_error(()) == 0
