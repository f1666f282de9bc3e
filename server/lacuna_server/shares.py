"""What clients make the service hold in memory: bounded for all together, and so that nobody can take it all."""

import sys

from lacuna_server.protocol import ServiceError

RETRY_MS = 2000


class Pool:
    """``size`` bytes for all clients; a share may hold as much as is then left, so that something is always left."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0

    def share(self) -> "Share":
        """A part that has nothing yet."""
        return Share(self)


class Share:
    """The bytes that one client, or one thing of theirs, holds of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.held = 0

    def take(self, num_bytes: int) -> None:
        """Hold more, or less where it is negative; raises ServiceError ``overloaded`` and changes nothing."""
        left = self._pool.size - self._pool.held - num_bytes
        if num_bytes > 0 and self.held + num_bytes > left:
            message = f"all clients together hold {self._pool.held} of {self._pool.size} bytes, there is no room for more"
            raise ServiceError("overloaded", message, RETRY_MS)
        self.held += num_bytes
        self._pool.held += num_bytes

    def give_back(self) -> None:
        """Hold nothing."""
        self.take(-self.held)


def unbounded() -> Share:
    """A share of a pool without a bound."""
    return Pool(sys.maxsize).share()
