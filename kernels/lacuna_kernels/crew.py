"""How many threads work on a call: fewer while other programs want the cores.

Threads meet at barriers, some three hundred a pass. Where one of them has lost its core, the others wait there for a
time slice of several milliseconds: on two cores, of which another program wanted one, a fill of 32 tokens took 3.6 s
instead of 0.24 s, and with one thread 0.31 s.
"""

import time
from collections.abc import Callable

# Who waits, sleeps: less than this share of a call's time on a core means that the others were not there. Calls are
# short enough, about a millisecond, that a lost slice of four is seen at once.
LEAST_SHARE = 0.5
# After so many calm calls, ten passes, twice the threads are tried. Each time that soon fails the wait is doubled.
CALM = 90
LONGEST_CALM = 128 * CALM


class Crew:
    """The number of threads (``size``), from what the calls so far took on the clock and of the caller's core."""

    def __init__(self, most: int) -> None:
        self.size = self._most = most
        self._wait = CALM
        self._since = 0  # calls since the size last changed

    def run(self, call: Callable[[int], int]) -> int:
        """What ``call`` returns, given the number of threads."""
        if self._most == 1:
            return call(1)
        began, own = time.perf_counter(), time.thread_time()
        result = call(self.size)
        self._since += 1
        waited = time.thread_time() - own < LEAST_SHARE * (time.perf_counter() - began)
        if waited and self.size > 1:
            self._wait = min(2 * self._wait, LONGEST_CALM) if self._since < CALM else CALM
            self._resize(self.size // 2)
        elif self.size < self._most and self._since >= self._wait:
            self._resize(min(2 * self.size, self._most))
        return result

    def _resize(self, size: int) -> None:
        self.size, self._since = size, 0
