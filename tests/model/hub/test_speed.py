"""The speed that the default model is chosen by is kept, and put right where it is wrong."""

import os
from pathlib import Path

import pytest

from lacuna_model.hub import models, speed

LARGE = models.LARGE_WEIGHTS


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(speed, "is_busy", lambda: False)


def test_the_speed_of_a_smaller_model_tells_that_of_the_large_one() -> None:
    speed.learn(100.0, LARGE // 2)
    assert models.line_ms() == pytest.approx(200.0, rel=1e-3)


def test_a_wrong_speed_is_put_right_and_a_similar_one_stays() -> None:
    speed.correct(400.0, LARGE)
    speed.correct(500.0, LARGE)
    assert models.line_ms() == pytest.approx(400.0)
    speed.correct(100.0, LARGE)
    assert models.line_ms() == pytest.approx(100.0)


def test_on_a_busy_machine_a_model_is_at_most_faster_than_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "is_busy", lambda: True)
    speed.correct(900.0, LARGE)
    assert models.line_ms() is None
    speed.learn(400.0, LARGE)
    speed.correct(5000.0, LARGE)
    assert models.line_ms() == pytest.approx(400.0)
    speed.correct(200.0, LARGE)
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
    monkeypatch.setattr(speed, "time", machine)
    monkeypatch.setattr(speed, "num_cores", lambda: 2)
    monkeypatch.setattr(speed, "PROCESSOR_TIMES", machine.file)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert speed.undisturbed(machine.line) == pytest.approx(1000.0, rel=0.02)
    assert machine.others == []


def test_a_system_that_tells_nothing_of_others_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(speed, "PROCESSOR_TIMES", tmp_path / "missing")
    times = iter([700.0, 300.0, 900.0, 800.0])
    assert speed.undisturbed(lambda: next(times)) == 300.0


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"line_ms": null}', '{"line_ms": -1}', '{"line_ms": "1"}'])
def test_a_damaged_file_counts_as_no_measurement(content: str) -> None:
    models.speed_file().parent.mkdir()
    models.speed_file().write_text(content)
    assert models.line_ms() is None
