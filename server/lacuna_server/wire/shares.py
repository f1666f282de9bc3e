"""What clients make the service hold in memory: bounded for all together, and so that nobody can take it all."""

import sys

from lacuna_server.wire.protocol import ServiceError

RETRY_MS = 2000


class Pool:
    """``size`` bytes for all clients.

    A share may hold as much as is then left. Half of the pool is for this user's own clients, who send the token: the
    others, who may be anybody on this machine, cannot keep them out.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0

    def share(self, *, trusted: bool = False) -> "Share":
        """A part that has nothing yet."""
        return Share(self, self.size if trusted else self.size // 2)


class Share:
    """The bytes that one client, or one thing of theirs, holds of a pool; with all others never more than ``limit``."""

    def __init__(self, pool: Pool, limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self.held = 0

    def take(self, num_bytes: int) -> None:
        """Hold more, or less where it is negative; raises ServiceError ``overloaded`` and changes nothing."""
        left = self._limit - self._pool.held - num_bytes
        if num_bytes > 0 and self.held + num_bytes > left:
            held = f"all clients together hold {self._pool.held} of {self._pool.size} bytes"
            raise ServiceError("overloaded", f"{held}, there is no room for more", RETRY_MS)
        self.held += num_bytes
        self._pool.held += num_bytes

    def give_back(self) -> None:
        """Hold nothing."""
        self.take(-self.held)


UNBOUNDED = Pool(sys.maxsize)
