"""How long to wait for the next keystroke before the model is asked.

Tabby's formula: the average interval between keystrokes, times 3 where the cursor stands in the middle of things down
to 1.5 where a suggestion is likely to be wanted, less the time that an answer takes anyway.
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
    """The rhythm of one client's typing and of its answers. Times are milliseconds."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._intervals: deque[float] = deque(maxlen=_MAX_INTERVALS)
        self._answers: deque[float] = deque(maxlen=_ANSWERS)

    def typed(self, now: float) -> None:
        """A keystroke; a pause longer than typing has is none of its intervals."""
        if self._last is not None and now - self._last <= _MAX_INTERVAL_MS:
            self._intervals.append(now - self._last)
        self._last = now

    def answered(self, took: float) -> None:
        """An answer took so long."""
        self._answers.append(took)

    def delay(self, head: str, tail: str, *, at_end: bool) -> float:
        """How long to wait; ``head`` and ``tail`` are the cursor's line, ``at_end`` says that nothing follows it."""
        score = 0.5 * bool(_TRIGGERS.fullmatch(head[-1:])) + 0.4 * (not tail.strip()) + 0.1 * at_end
        rate = _MAX_RATE - (_MAX_RATE - _MIN_RATE) * score
        expected = sum(self._answers) / len(self._answers) if self._answers else 0.0
        return min(max(rate * self._interval() - expected, 0.0), _MAX_DELAY_MS)

    def _interval(self) -> float:
        if len(self._intervals) < _MIN_INTERVALS:
            return _FIRST_INTERVAL_MS
        average = sum(self._intervals) / len(self._intervals)
        return min(max(average, _MIN_INTERVAL_MS), _MAX_INTERVAL_MS)
