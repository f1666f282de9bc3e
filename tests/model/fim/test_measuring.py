"""First costs are those of passes, wherever they are made: of no compilation, and not of calls that return before."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest
from tests.model import started
from tests.model.elsewhere import LEAVING, Elsewhere

from lacuna_model.fim import measuring, passes
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.measuring import PASS_ROWS, first_costs
from lacuna_model.hub import models

RECORDING_S, PASS_S = 3.0, 0.004


class Slow(Elsewhere):
    """Works for some milliseconds after each call that starts a pass; whoever copies something waits for that."""

    now = 0.0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.now += PASS_S * (func in LEAVING)
        return super().__torch_function__(func, types, args, kwargs)


def test_a_recording_of_seconds_is_no_cost_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    slow = Slow()

    def recording() -> None:
        slow.now += RECORDING_S

    recorder = started.pretend(monkeypatch, triton=True, recorder=started.Recorder(recording))
    for module in (time, passes):
        monkeypatch.setattr(module, "perf_counter", lambda: slow.now)
    with slow:
        loaded = dataclasses.replace(started.least(), costs=PassCosts())
        first_costs(loaded)
    assert recorder.count == len(PASS_ROWS)
    for rows in PASS_ROWS:
        assert PASS_S <= loaded.costs.ms(rows) / 1e3 < RECORDING_S / 100
    assert loaded.costs.worth(1, 0.1)


LARGE = models.LARGE_WEIGHTS


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(measuring, "is_busy", lambda: False)


def test_a_wrong_speed_is_put_right_and_a_similar_one_stays() -> None:
    measuring.correct(400.0, LARGE)
    measuring.correct(500.0, LARGE)
    assert models.line_ms() == pytest.approx(400.0)
    measuring.correct(100.0, LARGE)
    assert models.line_ms() == pytest.approx(100.0)


def test_on_a_busy_machine_a_model_is_at_most_faster_than_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "is_busy", lambda: True)
    measuring.correct(900.0, LARGE)
    assert models.line_ms() is None
    measuring.learn(400.0, LARGE)
    measuring.correct(5000.0, LARGE)
    assert models.line_ms() == pytest.approx(400.0)
    measuring.correct(200.0, LARGE)
    assert models.line_ms() == pytest.approx(200.0)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"line_ms": null}', '{"line_ms": -1}', '{"line_ms": "1"}'])
def test_a_damaged_file_counts_as_no_measurement(content: str) -> None:
    models.speed_file().parent.mkdir()
    models.speed_file().write_text(content)
    assert models.line_ms() is None
