"""When a call of the constraint has to end."""

import pytest

from lacuna_model.syntax.lr import clock
from lacuna_model.syntax.lr.clock import Clock


class Time:
    """Fakes of the wall clock (``now``) and of the thread's CPU clock (``own``), set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.own = 100.0
        monkeypatch.setattr(clock.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(clock.time, "thread_time", lambda: self.own)


def test_a_clock_without_a_call_is_never_over(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Time(monkeypatch)
    one = Clock(deadline=101.0)
    machine.now = 1e9
    assert not one.over


def test_a_call_ends_by_the_cpu_time_of_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Time(monkeypatch)
    one = Clock()
    one.begin(1.0)
    machine.now += 50.0
    assert not one.over
    machine.own += 1.0
    assert one.over
    one.begin(1.0)
    assert not one.over


def test_a_call_ends_at_the_deadline_but_not_before_its_least_time(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Time(monkeypatch)
    one = Clock(deadline=100.5)
    one.begin(9.0)
    machine.now = 100.5
    assert one.over
    one.begin(9.0, least=0.3)
    assert not one.over
    machine.now = 100.9
    assert one.over


def test_a_stopped_clock_stays_over(monkeypatch: pytest.MonkeyPatch) -> None:
    Time(monkeypatch)
    one = Clock()
    one.begin(9.0)
    assert not one.over
    one.stop()
    assert one.over
    one.begin(9.0)
    assert one.over
