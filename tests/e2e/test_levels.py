"""What the soak says of memory."""

import random

import pytest
from tests.e2e.levels import SETTLED_MIN, Levels, level

MINUTES = [number / 2 for number in range(60)]


def test_memory_that_fills_and_then_stays_is_level() -> None:
    chance = random.Random(0)
    noted = [(minute, 1000 + 50 * min(minute, SETTLED_MIN) + chance.uniform(-20, 20)) for minute in MINUTES]
    found = level(noted)
    assert found is not None
    assert found.is_level


@pytest.mark.parametrize(("size", "per_minute"), [(50.0, 0.5), (100.0, 1.0), (1500.0, 10.0)])
def test_memory_that_goes_on_growing_is_not_level(size: float, per_minute: float) -> None:
    chance = random.Random(0)
    found = level([(minute, size + per_minute * minute + chance.uniform(-1, 1)) for minute in MINUTES])
    assert found is not None
    assert not found.is_level
    assert str(found).startswith("NOT LEVEL")


def test_a_process_is_judged_by_its_own_life() -> None:
    levels = Levels()
    for minute in MINUTES:
        levels.note(minute, {("worker", 1 if minute < 6 else 2): 100.0, ("service", 3): 50.0 if minute < 20 else 60.0})
    judged = levels.judged()
    assert judged["worker 1"] is None
    for name, is_level in (("worker 2", True), ("service 3", False)):
        found = judged[name]
        assert found is not None
        assert found.is_level is is_level
    assert levels.at(10) == {"worker 2": 100.0, "service 3": 50.0}
