from itertools import pairwise

import pytest

from lacuna_kernels import crew
from lacuna_kernels.crew import CALM, LONGEST_CALM, NEAR, Crew


class Clock:
    """A fake clock. Each call ``took`` some seconds; with several threads, the caller works for a ``share`` of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall = self.own = 0.0
        self.share = self.took = 1.0
        monkeypatch.setattr(crew.time, "perf_counter", lambda: self.wall)
        monkeypatch.setattr(crew.time, "thread_time", lambda: self.own)

    def call(self, threads: int) -> int:
        self.wall += self.took
        self.own += self.took * (self.share if threads > 1 else 1.0)
        return threads


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def sizes(workers: Crew, clock: Clock, calls: int) -> list[int]:
    return [workers.run(clock.call) for _ in range(calls)]


def test_all_threads_work_while_none_waits(clock: Clock) -> None:
    clock.share = 0.8
    assert set(sizes(Crew(4), clock, 10 * CALM)) == {4}


def test_fewer_threads_work_while_they_wait_for_each_other_and_all_again_afterwards(clock: Clock) -> None:
    workers = Crew(4)
    clock.share = 0.1
    assert sizes(workers, clock, 5) == [4, 4, 2, 2, 1]
    clock.share = 1.0
    sizes(workers, clock, 20 * CALM)
    assert workers.size == 4


def test_a_call_that_waits_now_and_then_costs_no_thread(clock: Clock) -> None:
    workers = Crew(2)
    for _ in range(20):
        clock.share = 0.1
        sizes(workers, clock, 1)
        clock.share = 1.0
        sizes(workers, clock, NEAR)
    assert workers.size == 2


def test_a_thread_that_has_to_be_woken_for_a_short_call_costs_no_thread(clock: Clock) -> None:
    clock.took, clock.share = 0.001, 0.1
    assert set(sizes(Crew(2), clock, CALM)) == {2}


def test_while_the_machine_stays_busy_a_larger_crew_is_tried_seldom_but_is_tried(clock: Clock) -> None:
    workers = Crew(2)
    clock.share = 0.1
    found = sizes(workers, clock, 200 * CALM)
    tries = [place for place in range(1, len(found)) if found[place - 1 : place + 1] == [1, 2]]
    waits = [later - earlier for earlier, later in pairwise(tries)]
    assert len(tries) > 3
    assert waits[0] <= waits[-1] < LONGEST_CALM + NEAR
    assert min(waits) >= CALM
    assert found.count(2) < 0.02 * len(found)


def test_a_crew_of_one_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "time", None)
    assert Crew(1).run(lambda threads: threads) == 1
