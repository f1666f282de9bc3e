"""First costs are those of passes, wherever they are made: of no compilation, and not of calls that return before."""

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.model import started, tiny_masks
from tests.model.elsewhere import ELSEWHERE, LEAVING, Elsewhere

from lacuna_model.fim import measuring, passes
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.measuring import PASS_ROWS, first_costs
from lacuna_model.fim.passes import AskedChain, SharedPasses, Wanted
from lacuna_model.fim.track import EndRule
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


def test_the_first_passes_are_those_of_fills_where_rows_were_trained_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    recorder = started.pretend(monkeypatch, triton=True)
    with Elsewhere():
        plain = started.least()
        added = tiny_masks.rows(plain.config, device=ELSEWHERE).layers
        transformer = started.layers(plain.transformer).with_additions("infill", added)
        loaded = dataclasses.replace(plain, transformer=transformer)
        first_costs(loaded)
        recorder.count = 0
        for rows in PASS_ROWS:
            reader = loaded.tracks()
            fill = reader.new("infill")
            fill.become(range(5, 5 + rows), 0)
            asked = AskedChain([fill], [EndRule()] * rows, len)
            SharedPasses(loaded.transformer, loaded.costs, loaded.digests).read(Wanted(reader, [asked]))
    assert recorder.count == 0


LARGE = models.LARGE_WEIGHTS


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(measuring, "is_busy", lambda: False)


def test_the_speed_of_a_smaller_model_tells_that_of_the_large_one() -> None:
    measuring.learn(100.0, LARGE // 2)
    assert models.line_ms() == pytest.approx(200.0, rel=1e-3)


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


class Machine:
    """A pretended machine with two cores: what other programs take of it while each line is written."""

    def __init__(self, file: Path) -> None:
        self.file, self.others, self.now, self.own, self.ticks = file, [0.0], 0.0, 0.0, 0.0
        self.tell()

    def tell(self) -> None:
        line = f"{round(self.ticks * os.sysconf('SC_CLK_TCK') / 2)} 0 0 999 0 0 0 0 7 7"
        self.file.write_text(f"cpu  1 1 1\ncpu0 {line}\ncpu1 {line}\ncpu2 8888 0 0 0 0 0 0 0 0 0\nintr 1\n")

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.own

    def line(self) -> float:
        """A line takes a second of the whole machine; returns the milliseconds that it took beside the others."""
        taken = self.others.pop(0)
        seconds = 1 / (1 - taken)
        self.now += seconds
        self.own += 2.0
        self.ticks += 2 * seconds
        self.tell()
        return seconds * 1e3


@pytest.mark.parametrize("others", [[0.0] * 4, [0.75] * 4, [0.5, 0.0, 0.3, 0.79]])
def test_what_others_take_is_no_speed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, others: list[float]) -> None:
    machine = Machine(tmp_path / "stat")
    machine.others = [*others]
    monkeypatch.setattr(measuring, "time", machine)
    monkeypatch.setattr(measuring, "num_processors", lambda: 2)
    monkeypatch.setattr(measuring, "PROCESSOR_TIMES", machine.file)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert measuring.undisturbed(machine.line) == pytest.approx(1000.0, rel=0.02)
    assert machine.others == []


def test_a_system_that_tells_nothing_of_others_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measuring, "PROCESSOR_TIMES", tmp_path / "missing")
    times = iter([700.0, 300.0, 900.0, 800.0])
    assert measuring.undisturbed(lambda: next(times)) == 300.0


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"line_ms": null}', '{"line_ms": -1}', '{"line_ms": "1"}'])
def test_a_damaged_file_counts_as_no_measurement(content: str) -> None:
    models.speed_file().parent.mkdir()
    models.speed_file().write_text(content)
    assert models.line_ms() is None
