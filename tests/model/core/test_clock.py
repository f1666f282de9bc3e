"""When a call of the constraint has to end."""

import pytest

from lacuna_model.core import work
from lacuna_model.core.work import Clock


class Time:
    """A fake of the wall clock, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(work.time, "monotonic", lambda: self.now)


def test_a_call_ends_by_the_work_of_its_own_thread_and_not_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Time(monkeypatch)
    one = Clock()
    one.begin(1.0)
    machine.now += 50.0
    work.spend(10**9 - 1)
    assert not one.over
    work.spend(1)
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
