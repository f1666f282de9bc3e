"""How long to wait for the next key, and how sure a suggestion must be: by the rhythm of the keys and the last answers.

A fill goes on while the user types along it, so a request is seldom in vain. Only an engine that answers well within
the interval between two keystrokes waits, for keys that come in bursts. Who takes suggestions sees more of them, and
sooner. The factors of the wait, and the weights of the last answers, are those of Copilot's client as published; how
far they move the wait and the gate is bounded. Answers are kept on the machine, by language and place, and never sent.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.core.odds import odds_of
from lacuna_model.hub import atomic

_MIN_INTERVALS, _MAX_INTERVALS = 20, 100
_MIN_INTERVAL_MS, _FIRST_INTERVAL_MS, _MAX_INTERVAL_MS = 100.0, 200.0, 400.0
# The answer is due after this share of an interval, or as soon as the engine has it.
_SHARE = 0.5
_ANSWERS = 10
_SOONEST_DUE_MS, _LATEST_DUE_MS = 400.0, 700.0
log = logging.getLogger(__name__)

# What became of a suggestion: 1 if it was taken, less if a part of it was, 0 if another text was typed over it.
TAKEN, PART, REFUSED = 1.0, 0.5, 0.0
KEPT, KINDS = 10, 64  # the last answers of a language and place, and the last used ones of these
USUAL, PULL = 0.4, 4.0  # the usual share of taken ones, which counts as so many answers
LEAST_ODDS, MOST_ODDS = 0.7, 1.4
LONGER, SHORTER = 1.5, 0.8  # the wait after an answer, times that before it
FORGOTTEN_S = 600.0  # in which the factor of the wait goes back to 1
MOST_LONGER, MOST_SHORTER = 8.0, 1 / 8  # the factor after many answers; a few others bring it back
# Keys that come later than the longest wait are no typing: who has paused for so long would think that nothing comes.
LEAST_WAIT_MS, MOST_WAIT_MS = 50.0, 400.0


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


class Calmness:
    """The last answers of a person, by ``kind``: a language and place. ``clock`` returns seconds."""

    def __init__(self, file: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = file, clock
        self._answers = _read(file) if file is not None else {}
        self._factor, self._since = 1.0, clock()
        self._is_changed = False

    def answered(self, kind: str, answer: float, *, again: bool = False) -> None:
        """Takes in what became of a suggestion.

        ``again``: the last answer was to the same one, of which a part was taken. The better of both counts.
        """
        known = self._answers.pop(kind, [])
        if again and known:
            answer = max(known.pop(), answer)
        self._answers[kind] = [*known, answer][-KEPT:]
        for old in list(self._answers)[:-KINDS]:
            del self._answers[old]
        if not again:
            change = LONGER if answer == REFUSED else SHORTER
            self._factor, self._since = min(max(self._wait_factor() * change, MOST_SHORTER), MOST_LONGER), self._clock()
        self._is_changed = True

    def odds(self, kind: str) -> float:
        """By which factor the odds of a suggestion are better here than usual."""
        last = self._answers.get(kind, [])
        weights = [2 * number / (KEPT + 1) for number in range(1, len(last) + 1)]  # newer ones weigh more
        taken = sum(weight * one for weight, one in zip(weights, last, strict=True))
        share = (taken + PULL * USUAL) / (sum(weights) + PULL)
        return min(max(odds_of(share) / odds_of(USUAL), LEAST_ODDS), MOST_ODDS)

    def wait_ms(self, usual_ms: float) -> float:
        """How long to wait for the next key, where the rhythm of the keys says ``usual_ms``."""
        factor = self._wait_factor()
        if factor > 1:
            usual_ms = max(usual_ms, LEAST_WAIT_MS)
        return min(usual_ms * factor, MOST_WAIT_MS)

    def _wait_factor(self) -> float:
        left = max(1 - (self._clock() - self._since) / FORGOTTEN_S, 0.0)
        return float(self._factor**left)

    def save(self) -> None:
        """Writes the answers to their file, if there are new ones."""
        if self._file is None or not self._is_changed:
            return
        self._is_changed = False
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with atomic.replacing(self._file, private=True) as stream:
                stream.write(msgspec.json.encode(self._answers))
        except OSError as error:
            log.info("the answers to suggestions are not kept: %s", error)


def users_file() -> Path | None:
    """Where a user's answers are kept; None where there is no home folder."""
    try:
        return atomic.user_folder("state") / atomic.ANSWERS
    except RequestError:
        return None


def _read(file: Path) -> dict[str, list[float]]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, list[float]])
    except (OSError, msgspec.MsgspecError) as error:
        log.info("the answers to suggestions are not read: %s", error)
        return {}
