"""A clock of each thread that runs by the work that was done, so that a search ends at the same point everywhere.

The time that a search takes depends on the machine, on what else runs there, and on what caches hold. Searches with
budgets of time give other fills when the machine is busy; searches with budgets of work do not. Work is counted in
nominal seconds: about the seconds that it takes on one core of a server of 2024. Each module that does much of the work
knows the cost of its own steps. What a cache spares one request and not the next is either not counted, or counted
again each time (``cached``).
"""

import math
import threading
import time
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


class _Thread(threading.local):
    spent = 0  # nominal nanoseconds: sums of integers are exact


_THREAD = _Thread()


def spend(nanoseconds: int) -> None:
    """Count work of this thread."""
    _THREAD.spent += nanoseconds


def spent() -> int:
    """The work that this thread has done since it began, in nominal nanoseconds."""
    return _THREAD.spent


def mark(seconds: float) -> int:
    """Where this thread's clock will be after so much more work."""
    return _THREAD.spent + round(seconds * 1e9)


def reached(mark: int) -> bool:
    """Whether this thread has done the work up to a mark."""
    return _THREAD.spent >= mark


def cached(maxsize: int) -> Callable[[Function], Function]:
    """A decorator that keeps a function's last ``maxsize`` results; a kept one counts as much work as a new one."""

    def decorate(function: Function) -> Function:
        @lru_cache(maxsize)
        def kept(*args: Hashable) -> tuple[object, int]:
            before = _THREAD.spent
            result = function(*args)
            return result, _THREAD.spent - before

        @wraps(function)
        def call(*args: Hashable) -> object:
            before = _THREAD.spent
            result, own = kept(*args)
            _THREAD.spent = before + own
            return result

        return cast(Function, call)

    return decorate


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
        self._mark = mark(seconds)
        self._until = max(self._deadline, time.monotonic() + least)

    @property
    def over(self) -> bool:
        """Whether the current call has to end."""
        return (self._mark is not None and reached(self._mark)) or time.monotonic() >= self._until

    def stop(self) -> None:
        """End the current call at once; later calls get only their ``least`` seconds."""
        self._deadline = self._until = -math.inf
