"""Serves this user's own clients before strangers: whom the event loop handles next, and what strangers' time is.

A loop that handles all connections that are ready in one turn lets everybody wait for a crowd. Here a turn handles the
own ones and one of a stranger, so an own client waits for one step of a stranger's at most, however many there are.
"""

import asyncio
import contextlib
import socket
import time
from collections import ChainMap, deque
from collections.abc import AsyncIterator, Callable, Mapping
from selectors import EVENT_READ, BaseSelector, DefaultSelector, SelectorKey
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

Clock = Callable[[], float]

# The part of one core's time for connections of strangers, while this user's own clients are connected.
SHARE = 0.25
# They may use the time of so many seconds at once after a pause.
BURST_S = 0.2
# The same for reading their messages, while own clients are there.
READING_SHARE, READING_BURST_S = 0.05, 2.0
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
        self._budget = Budget(READING_SHARE, READING_BURST_S, clock)
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


class OwnFirst(BaseSelector):
    """Selects of all that is ready the own, and of strangers' one at a time, in turn, as long as there is time for it.

    Descriptors of strangers have a selector of their own, which the other one watches: while they have used up their
    time, nothing that they send wakes the loop.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._own = DefaultSelector()
        self._strangers = DefaultSelector()
        self._watched: SelectorKey | None = None
        self._waiting: deque[tuple[SelectorKey, int]] = deque()
        self._of_strangers: set[int] = set()
        self._preferred: set[int] = set()
        self._budget = Budget(SHARE, BURST_S, clock)
        self._began: float | None = None

    # --- whom to serve first

    def set_apart(self, descriptor: int) -> None:
        """Note that a descriptor is a stranger's."""
        self.forget(descriptor)
        self._of_strangers.add(descriptor)
        _move(descriptor, self._own, self._strangers)

    def prefer(self, descriptor: int) -> None:
        """Note that a descriptor is that of an own client. While there is one, strangers have a part of the time."""
        self.forget(descriptor)
        self._preferred.add(descriptor)

    def forget(self, descriptor: int) -> None:
        """Note that a descriptor is about to be closed; the next one with its number may be anybody's.

        What is still registered is found, and unregistered, as the program's own.
        """
        self._of_strangers.discard(descriptor)
        self._preferred.discard(descriptor)
        _move(descriptor, self._strangers, self._own)

    # --- a turn

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Wait until something is ready, and return all that is the program's or own, and one of the strangers'."""
        self._count(goes_on=timeout is not None and timeout <= 0)
        rest_s = self._budget.wait_s() if self._preferred else 0.0
        self._watch(rest_s <= 0)
        if rest_s > 0:
            timeout = rest_s if timeout is None else min(timeout, rest_s)
        elif self._waiting:
            timeout = 0
        ready = [one for one in self._own.select(timeout) if one[0] is not self._watched]
        if rest_s <= 0:
            ready += self._next_of_strangers()
        return ready

    def _count(self, *, goes_on: bool) -> None:
        """Count the turn that ends now as strangers' time, from one of theirs until the loop has nothing to do."""
        now = self._clock()
        if self._began is not None:
            if self._preferred:
                self._budget.spend(now - self._began)
            self._began = now if goes_on else None

    def _watch(self, strangers: bool) -> None:
        """Let what strangers send end the waiting, or not."""
        if strangers and self._watched is None:
            self._watched = self._own.register(self._strangers, EVENT_READ)
        elif not strangers and self._watched is not None:
            self._own.unregister(self._strangers)
            self._watched = None

    def _next_of_strangers(self) -> list[tuple[SelectorKey, int]]:
        """Return the next one of a stranger that is still wanted, as a list."""
        if not self._waiting:
            self._waiting.extend(self._strangers.select(0))
        while self._waiting:
            key, events = self._waiting.popleft()
            if self._strangers.get_map().get(key.fd) is key:
                self._began = self._clock()
                return [(key, events)]
        return []

    # --- what is registered

    def register(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> SelectorKey:
        """Register a descriptor."""
        return self._of(fileobj).register(fileobj, events, data)

    def unregister(self, fileobj: "FileDescriptorLike") -> SelectorKey:
        """Unregister a descriptor."""
        return self._of(fileobj).unregister(fileobj)

    def modify(self, fileobj: "FileDescriptorLike", events: int, data: Any = None) -> SelectorKey:
        """Change what is wanted of a descriptor."""
        return self._of(fileobj).modify(fileobj, events, data)

    def get_map(self) -> "Mapping[FileDescriptorLike, SelectorKey]":
        """Return the keys of all that is registered."""
        return ChainMap(self._own.get_map(), self._strangers.get_map())  # type: ignore[arg-type]  # read only

    def close(self) -> None:
        """Close both selectors."""
        self._own.close()
        self._strangers.close()

    def _of(self, fileobj: "FileDescriptorLike") -> DefaultSelector:
        """Return the selector in which a descriptor belongs."""
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        return self._strangers if descriptor in self._of_strangers else self._own


def _move(descriptor: int, old: DefaultSelector, new: DefaultSelector) -> None:
    """Register a descriptor in another selector, if it is registered."""
    if descriptor in old.get_map():
        key = old.unregister(descriptor)
        new.register(key.fileobj, key.events, key.data)


def is_private(listener: socket.socket) -> bool:
    """Whether only this user's own programs reach a socket: one with a path, in a folder of theirs."""
    return listener.family not in (socket.AF_INET, socket.AF_INET6)
