"""A clock of each thread that runs by the work that was done, so that a search ends at the same point everywhere.

The time that a search takes depends on the machine, on what else runs there, and on what caches hold. Searches with
budgets of time give other fills when the machine is busy; searches with budgets of work do not. Work is counted in
nominal seconds: about the seconds that it takes on one core of a server of 2024. Each module that does much of the work
knows the cost of its own steps. What a cache spares one request and not the next is not counted.

Some texts cost far more than their nominal work. So there is one limit of real time behind all budgets: between two
steps of a request, all that is ``bounded`` may together take no more of its thread than the request's ``Allowance``.
"""

import math
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar, cast

from lacuna_model.core.errors import LacunaError

Item = TypeVar("Item")
Result = TypeVar("Result")
# The time of its thread that a request may take at once, and how much of it comes back with each step, in nanoseconds.
# The longest question about an ordinary file that is broken takes half a second on a machine that is not busy.
AT_ONCE_NS, A_STEP_NS = 1_500_000_000, 100_000_000
CHECKED_NS = 1_000_000  # of work, after which the time is looked at again
CHECKED_ITEMS = 256  # after which it is, too


class OverBudgetError(LacunaError):
    """A request has taken the time that it may keep the others waiting."""


class _Thread(threading.local):
    spent = 0  # nominal nanoseconds: sums of integers are exact
    allowance: "Allowance | None" = None
    until = math.inf  # the instant of the thread's time at which what is bounded ends
    checked = 0  # what had been spent when the time was looked at


_THREAD = _Thread()


class Allowance:
    """What a request may still take of its thread's time, in nanoseconds, before it lets the others have a turn."""

    def __init__(self) -> None:
        self.left = AT_ONCE_NS

    def renew(self) -> None:
        """Begin another step."""
        self.left = min(max(self.left, 0) + A_STEP_NS, AT_ONCE_NS)


@contextmanager
def allowed(own: Allowance) -> Iterator[None]:
    """Within, what is ``bounded`` in this thread takes from an allowance."""
    before, _THREAD.allowance = _THREAD.allowance, own
    try:
        yield
    finally:
        _THREAD.allowance = before


def in_steps(steps: Generator[Item, None, Result]) -> Generator[Item, None, Result]:
    """Yield from the ``steps`` of a request, which get one allowance together."""
    own = Allowance()
    with closing(steps):
        while True:
            try:
                with allowed(own):
                    item = next(steps)
            except StopIteration as end:
                return cast(Result, end.value)
            yield item
            own.renew()


@contextmanager
def bounded(*, least: float = 0.0) -> Iterator[None]:
    """Within, :func:`check` raises OverBudgetError once the request's allowance is used up, but not before ``least`` s.

    Without an allowance in this thread nothing is bounded.
    """
    own = _THREAD.allowance
    if own is None or _THREAD.until < math.inf:
        yield
        return
    began = time.thread_time_ns()
    _THREAD.until = began + max(own.left, round(least * 1e9))
    try:
        yield
    finally:
        _THREAD.until = math.inf
        own.left -= time.thread_time_ns() - began


def is_over() -> bool:
    """Whether the time is used up that what is bounded here may take."""
    _THREAD.checked = _THREAD.spent
    return _THREAD.until < math.inf and time.thread_time_ns() >= _THREAD.until


def check() -> None:
    """Raise OverBudgetError if the time is used up. What may take long without counting its work calls this."""
    if is_over():
        raise OverBudgetError("the text takes too long to check")


def checked(items: Iterable[Item]) -> Iterator[Item]:
    """Yield some items, and check from time to time."""
    for number, item in enumerate(items, 1):
        if not number % CHECKED_ITEMS:
            check()
        yield item


def spend(nanoseconds: int) -> None:
    """Count work of this thread. Raises OverBudgetError if the time is used up."""
    _THREAD.spent += nanoseconds
    if _THREAD.spent - _THREAD.checked >= CHECKED_NS:
        check()


def spent() -> int:
    """The work that this thread has done since it began, in nominal nanoseconds."""
    return _THREAD.spent


def mark(seconds: float) -> int:
    """Where this thread's clock will be after so much more work."""
    return _THREAD.spent + round(seconds * 1e9)


def reached(mark: int) -> bool:
    """Whether this thread has done the work up to a mark."""
    return _THREAD.spent >= mark


class Clock:
    """Tells when a call has to end: after its own budget of work, or at the request's deadline.

    ``deadline`` is a ``time.monotonic`` instant. Before the first ``begin`` the clock is never over. A call begins and
    ends in one thread.
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
