"""The clock that all searches within one constraint call share."""

import math
import time


class Clock:
    """Tells when a call has to end: after its own budget of seconds, or at the request's deadline.

    The budget is CPU time of the thread, so that other load on the machine does not change a result. ``deadline`` is a
    ``time.monotonic`` instant. Before the first ``begin`` the clock is never over, unless it was stopped.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = math.inf if deadline is None else deadline
        self._own_until = self._soonest = self._until = math.inf

    def begin(self, seconds: float, *, least: float = 0.0) -> None:
        """Start a call with a budget of ``seconds``; even past the deadline it gets ``least`` seconds."""
        now = time.monotonic()
        self._own_until, self._soonest = time.thread_time() + seconds, now + seconds
        self._until = max(self._deadline, now + least)

    @property
    def over(self) -> bool:
        """Whether the current call has to end."""
        now = time.monotonic()  # cheap; the thread's time needs a system call and never runs faster
        return now >= self._until or (now >= self._soonest and time.thread_time() >= self._own_until)

    def stop(self) -> None:
        """End the current call at once; later calls get only their ``least`` seconds."""
        self._deadline = self._until = -math.inf
