"""A budget of time: a share of the time that passes."""

import time
from collections.abc import Callable

Clock = Callable[[], float]


class Budget:
    """Time that may be spent: ``share`` of the time that passes, and after a pause what ``burst_s`` seconds gave."""

    def __init__(self, share: float, burst_s: float, clock: Clock = time.monotonic) -> None:
        self._share = share
        self._burst_s = burst_s
        self._clock = clock
        self._owed_until = 0.0

    def wait_s(self) -> float:
        """Return the seconds until there is time to spend; 0 or less: there is."""
        return self._owed_until - self._clock()

    def spend(self, spent_s: float) -> None:
        """Note that ``spent_s`` seconds were spent, which may be more than there was."""
        self._owed_until = max(self._owed_until, self._clock() - self._burst_s) + spent_s / self._share
