"""Work is counted by thread; what is bounded in a request takes no more of its thread than its allowance."""

import threading
import time
from collections.abc import Generator

import pytest

from lacuna_model.core import work
from lacuna_model.core.work import A_STEP_NS, AT_ONCE_NS, Clock, OverBudgetError


class Time:
    """Time of the thread (ns) and of the wall (s) that passes only where a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.thread, self.wall = 0, 100.0
        monkeypatch.setattr(time, "thread_time_ns", lambda: self.thread)
        monkeypatch.setattr(time, "monotonic", lambda: self.wall)


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def test_all_bounded_parts_of_a_step_share_its_allowance(passed: Time) -> None:
    def steps() -> Generator[int, None, str]:
        passed.thread += 10 * AT_ONCE_NS  # a pass of the model
        for _ in range(2):
            with work.bounded():
                passed.thread += AT_ONCE_NS // 2 - 1
                work.check()
        yield 1
        with work.bounded():
            passed.thread += A_STEP_NS + 3
            with pytest.raises(OverBudgetError):
                work.check()
        with pytest.raises(OverBudgetError), work.bounded():
            work.check()
        with work.bounded(least=0.1):
            passed.thread += A_STEP_NS - 1
            work.check()
        return "end"

    loop = work.in_steps(steps())
    assert next(loop) == 1
    with pytest.raises(StopIteration) as end:
        next(loop)
    assert end.value.value == "end"


def test_work_that_is_counted_and_items_that_are_checked_ask_for_the_time(passed: Time) -> None:
    with work.allowed(work.Allowance()), work.bounded():
        passed.thread += AT_ONCE_NS + 1
        with pytest.raises(OverBudgetError):
            work.spend(work.CHECKED_NS)
        with pytest.raises(OverBudgetError):
            list(work.checked(range(work.CHECKED_ITEMS)))


def test_a_call_ends_by_the_work_of_its_own_thread_and_not_by_time(passed: Time) -> None:
    one = Clock()
    one.begin(1.0)
    passed.wall += 50.0
    other = threading.Thread(target=work.spend, args=(10**9,))
    other.start()
    other.join()
    work.spend(10**9 - 1)
    assert not one.over
    work.spend(1)
    assert one.over
    one.begin(1.0)
    assert not one.over


def test_a_call_ends_at_the_deadline_but_not_before_its_least_time(passed: Time) -> None:
    one = Clock(deadline=100.5)
    one.begin(9.0)
    passed.wall = 100.5
    assert one.over
    one.begin(9.0, least=0.3)
    assert not one.over
    passed.wall = 100.9
    assert one.over
