"""Bounds the memory that clients occupy: for all of them together, and so that none can take it all."""

import sys

from lacuna_server.wire.protocol import ServiceError

RETRY_MS = 2000


class Pool:
    """``size`` bytes for all clients.

    A share may hold at most as many bytes as then remain free. Half of the pool is reserved for clients that send the
    token, so that other users of this machine cannot keep this user's own clients out.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0

    def share(self, *, trusted: bool = False) -> "Share":
        """Return an empty share; only ``trusted`` ones may use the reserved half."""
        return Share(self, self.size if trusted else self.size // 2)


class Share:
    """The bytes of a pool that one client, or one of its buffers, holds.

    It takes no more once all shares of the pool together would hold more than ``limit``.
    """

    def __init__(self, pool: Pool, limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self.held = 0

    def trust(self) -> None:
        """Let the share use the reserved half, since its client has sent the token."""
        self._limit = self._pool.size

    def take(self, num_bytes: int) -> None:
        """Add ``num_bytes`` to what the share holds; a negative number gives bytes back.

        Raises ServiceError ``overloaded``, and then nothing has changed.
        """
        left = self._limit - self._pool.held - num_bytes
        if num_bytes > 0 and self.held + num_bytes > left:
            held = f"all clients together hold {self._pool.held} of {self._pool.size} bytes"
            raise ServiceError("overloaded", f"{held}, there is no room for more", RETRY_MS)
        self.held += num_bytes
        self._pool.held += num_bytes

    def give_back(self) -> None:
        """Give all bytes back."""
        self.take(-self.held)


UNBOUNDED = Pool(sys.maxsize)
