"""Chooses the number of threads of a call: fewer while other programs use the cores.

Threads meet at barriers, about three hundred times a pass. If one of them has lost its core, the others wait there for
a time slice of several milliseconds. With one of two cores in use elsewhere, two threads are more than ten times slower
than one.
"""

import time
from collections.abc import Callable

# Waiting threads sleep: if the caller slept for more than this share of a call, and longer than it takes to wake a
# thread, other threads had no core. Calls take a few milliseconds, so that a lost slice of four shows at once.
MAX_SHARE, WAKING_S = 0.5, 0.002
# One call waits now and then on any machine. A core is in use elsewhere if another call of so many waits as well.
NEAR = 8
# After so many calls without waiting (about fifteen passes), twice the threads are tried. Each time that soon fails,
# the number is doubled: a try costs two slow calls, one thread in vain half the speed.
CALM = 90
LONGEST_CALM = 4 * CALM


class Crew:
    """Adapts the number of threads (``size``) to the wall-clock and CPU time of the calls so far."""

    def __init__(self, most: int) -> None:
        self.size = self._most = most
        self._wait = CALM
        self._since = 0  # calls since the size last changed
        self._waited_at = -NEAR  # the last of them that waited

    def run(self, call: Callable[[int], int]) -> int:
        """Run ``call`` with the number of threads and return its result."""
        if self._most == 1:
            return call(1)
        began, own = time.perf_counter(), time.thread_time()
        result = call(self.size)
        self._since += 1
        took = time.perf_counter() - began
        waited = took - (time.thread_time() - own) > max(MAX_SHARE * took, WAKING_S)
        if waited and self.size > 1:
            again, self._waited_at = self._since - self._waited_at < NEAR, self._since
            if again:
                self._wait = min(2 * self._wait, LONGEST_CALM) if self._since < CALM else CALM
                self._resize(self.size // 2)
        elif self.size < self._most and self._since >= self._wait:
            self._resize(min(2 * self.size, self._most))
        return result

    def _resize(self, size: int) -> None:
        self.size, self._since, self._waited_at = size, 0, -NEAR
