"""How many requests each engine replica has, and which were lost, as this ingress knows it: what its router goes by."""

import time
from collections import Counter

# So long a replica that could not be reached comes last; by then Ray Serve knows whether it is dead.
LOST_S = 15.0


class Loads:
    """Requests by replica: those of this ingress, exactly, and those of the others, as of the last look."""

    def __init__(self) -> None:
        self._own: Counter[str] = Counter()
        self._others: Counter[str] = Counter()
        self._lost: dict[str, float] = {}

    def lost(self, replica: str) -> None:
        """Note that the connection to a replica broke. Ray Serve learns some seconds later that it is dead."""
        self._lost[replica] = time.monotonic()

    def found(self, replica: str) -> None:
        """Note that a replica can be reached."""
        self._lost.pop(replica, None)

    def is_lost(self, replica: str) -> bool:
        """Return whether the connection to a replica broke lately, and it could not be reached since."""
        return time.monotonic() - self._lost.get(replica, -LOST_S) < LOST_S

    def begin(self, replica: str) -> None:
        """Count a request that this ingress sends to a replica."""
        self._own[replica] += 1

    def end(self, replica: str) -> None:
        """Count the end of such a request."""
        self._own[replica] -= 1

    def reported(self, replica: str, total: int) -> None:
        """Take over how many requests a replica says that it has."""
        self._others[replica] = max(0, total - self._own[replica])

    def of(self, replica: str) -> int:
        """Return the number of requests of a replica."""
        return self._own[replica] + self._others[replica]

    def keep_only(self, replicas: set[str]) -> None:
        """Forget the others."""
        for gone in (set(self._own) | set(self._others)) - replicas:
            self._others.pop(gone, None)
            if not self._own[gone]:
                self._own.pop(gone, None)


# Of this process: Ray Serve makes the router, so nobody can hand it over.
LOADS = Loads()
