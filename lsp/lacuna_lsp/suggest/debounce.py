"""Computes how long to wait for the next keystroke before the model is asked.

The formula is Tabby's: the average interval between keystrokes times a rate, minus the expected time of an answer. The
rate is 3 in the middle of a line, and down to 1.5 where the user is likely to want a suggestion.
"""

import re
from collections import deque

_MIN_INTERVALS, _MAX_INTERVALS = 20, 100
_MIN_INTERVAL_MS, _FIRST_INTERVAL_MS, _MAX_INTERVAL_MS = 100.0, 200.0, 400.0
_MIN_RATE, _MAX_RATE = 1.5, 3.0
_MAX_DELAY_MS = 1000.0
_TRIGGERS = re.compile(r"[\s.,:;(\[{<=+\-*/%!|&^~@#\"'`]")
_ANSWERS = 10


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
        """Records the time that an answer took."""
        self._answers.append(took)

    def delay(self, head: str, tail: str, *, at_end: bool) -> float:
        """Returns the wait; ``head`` and ``tail`` are the cursor's line, ``at_end`` means that only blanks follow."""
        score = 0.5 * bool(_TRIGGERS.fullmatch(head[-1:])) + 0.4 * (not tail.strip()) + 0.1 * at_end
        rate = _MAX_RATE - (_MAX_RATE - _MIN_RATE) * score
        expected = sum(self._answers) / len(self._answers) if self._answers else 0.0
        return min(max(rate * self._interval() - expected, 0.0), _MAX_DELAY_MS)

    def _interval(self) -> float:
        if len(self._intervals) < _MIN_INTERVALS:
            return _FIRST_INTERVAL_MS
        average = sum(self._intervals) / len(self._intervals)
        return min(max(average, _MIN_INTERVAL_MS), _MAX_INTERVAL_MS)
