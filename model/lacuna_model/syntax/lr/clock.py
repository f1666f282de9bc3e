"""The clock of a constraint's calls: one for all of its searches, however deep in them a loop is."""

import math
import time


class Clock:
    """Tells when a call has to end: after so many seconds of its own, and at the request's deadline.

    Its own are the thread's, not the clock's: what else the machine does must not change a result. The ``deadline`` is
    a ``time.monotonic`` instant. A clock on which nothing has begun yet is never over.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = math.inf if deadline is None else deadline
        self._own_until = self._soonest = self._until = math.inf

    def begin(self, seconds: float, *, least: float = 0.0) -> None:
        """A call begins that may take some seconds, and at the deadline or behind it still the ``least``."""
        now = time.monotonic()
        self._own_until, self._soonest = time.thread_time() + seconds, now + seconds
        self._until = max(self._deadline, now + least)

    @property
    def over(self) -> bool:
        """Whether what is under way has to end."""
        now = time.monotonic()  # which is cheap, while the thread's time is a system call, and never the faster one
        return now >= self._until or (now >= self._soonest and time.thread_time() >= self._own_until)

    def stop(self) -> None:
        """Whatever is under way has to end, and so has all that begins later."""
        self._deadline = self._until = -math.inf
