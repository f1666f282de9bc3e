"""Time for clients without the token: together they may take a small part of the service's."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

Clock = Callable[[], float]

# The part of one core's time in which the messages of strangers are read, while this user's own clients are there.
SHARE = 0.05
# They may use the time of so many seconds at once after a pause.
BURST_S = 2.0
# For so long after its last message an own client counts as there.
PRESENT_S = 10.0


class Budget:
    """Time that may be spent: ``share`` of the time that passes, and after a pause what ``burst_s`` seconds gave."""

    def __init__(self, share: float, burst_s: float, clock: Clock = time.monotonic) -> None:
        self._share = share
        self._burst_s = burst_s
        self._clock = clock
        self._owed_until = 0.0

    def wait_s(self) -> float:
        """Return the seconds until there is time to spend; 0 or less: there is."""
        return self._owed_until - self._clock()

    def spend(self, spent_s: float) -> None:
        """Note that ``spent_s`` seconds were spent, which may be more than there was."""
        self._owed_until = max(self._owed_until, self._clock() - self._burst_s) + spent_s / self._share


class Turns:
    """Lets the messages of strangers be read one after the other, and those of this user's own clients at once.

    A message is decoded in one call, during which nothing else runs: the user waits for that of one stranger at most,
    and rarely.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._one = asyncio.Lock()
        self._budget = Budget(SHARE, BURST_S, clock)
        self._own_until = 0.0

    @contextlib.asynccontextmanager
    async def turn(self, *, trusted: bool) -> AsyncIterator[None]:
        """Wait for the turn of a message, and have it until the end of the block."""
        if trusted:
            self._own_until = self._clock() + PRESENT_S
            yield
            return
        async with self._one:
            while (wait_s := self.wait_s()) > 0:
                await asyncio.sleep(min(wait_s, 1.0))
            began = self._clock()
            try:
                yield
            finally:
                if self._own_is_there():
                    self._budget.spend(self._clock() - began)

    def wait_s(self) -> float:
        """Return the seconds until the next message of a stranger is read."""
        return self._budget.wait_s() if self._own_is_there() else 0.0

    def _own_is_there(self) -> bool:
        return self._clock() < self._own_until
