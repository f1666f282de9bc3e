"""The clock that all searches within one constraint call share."""

import math
import time

from lacuna_model.core import work


class Clock:
    """Tells when a call has to end: after its own budget of work, or at the request's deadline.

    ``deadline`` is a ``time.monotonic`` instant. Before the first ``begin`` the clock is never over, unless it was
    stopped. A call begins and ends in one thread.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self._deadline = math.inf if deadline is None else deadline
        self._until = math.inf
        self._mark: int | None = None

    def begin(self, seconds: float, *, least: float = 0.0) -> None:
        """Start a call with a budget of ``seconds`` of work; even past the deadline it gets ``least`` real seconds."""
        self._mark = work.mark(seconds)
        self._until = max(self._deadline, time.monotonic() + least)

    @property
    def over(self) -> bool:
        """Whether the current call has to end."""
        return (self._mark is not None and work.reached(self._mark)) or time.monotonic() >= self._until

    def stop(self) -> None:
        """End the current call at once; later calls get only their ``least`` seconds."""
        self._deadline = self._until = -math.inf
