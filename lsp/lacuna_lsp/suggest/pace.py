"""How long to wait for the next key, and when an answer is due: by the rhythm of the keys and of the answers.

A fill goes on while the user types along it, so a request is seldom in vain. Only an engine that answers well within
the interval between two keystrokes waits, for keys that come in bursts.
"""

from collections import deque

_MIN_INTERVALS, _MAX_INTERVALS = 20, 100
_MIN_INTERVAL_MS, _FIRST_INTERVAL_MS, _MAX_INTERVAL_MS = 100.0, 200.0, 400.0
# The answer is due after this share of an interval, or as soon as the engine has it.
_SHARE = 0.5
_ANSWERS = 10
_SOONEST_DUE_MS, _LATEST_DUE_MS = 400.0, 700.0


class Debounce:
    """The rhythm of one client's typing and of its answers. Times are in milliseconds."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._intervals: deque[float] = deque(maxlen=_MAX_INTERVALS)
        self._answers: deque[float] = deque(maxlen=_ANSWERS)

    def typed(self, now: float) -> None:
        """Records a keystroke at time ``now``; a long pause does not count as an interval of typing."""
        if self._last is not None and now - self._last <= _MAX_INTERVAL_MS:
            self._intervals.append(now - self._last)
        self._last = now

    def answered(self, took: float) -> None:
        """Records the time that the first line of an answer took."""
        self._answers.append(took)

    def delay(self) -> float:
        """Returns the wait: none before the first answer: a model just loaded takes long for it."""
        if not self._answers:
            return 0.0
        return max(_SHARE * self._interval() - sum(self._answers) / len(self._answers), 0.0)

    def due(self) -> int:
        """Returns when a person who goes on typing should have the first line: two intervals after the last key."""
        return round(min(max(2 * self._interval(), _SOONEST_DUE_MS), _LATEST_DUE_MS))

    def _interval(self) -> float:
        if len(self._intervals) < _MIN_INTERVALS:
            return _FIRST_INTERVAL_MS
        average = sum(self._intervals) / len(self._intervals)
        return min(max(average, _MIN_INTERVAL_MS), _MAX_INTERVAL_MS)
