"""The queue of waiting requests: sessions take turns, and each session's newest document comes first."""

import itertools
import time
from collections import OrderedDict
from collections.abc import Container, Iterator

from lacuna_server.worker.tickets import Ticket

PATIENCE_S = 5.0


class FairQueue:
    """Waiting tickets. A session's turn ends when one of its tickets is taken.

    Preferred sessions come first, unless the others have waited ``PATIENCE_S`` seconds since one of theirs was taken.
    """

    def __init__(self) -> None:
        self._preferred: OrderedDict[str, list[Ticket]] = OrderedDict()
        self._others: OrderedDict[str, list[Ticket]] = OrderedDict()
        self._others_wait_since = time.monotonic()

    def __len__(self) -> int:
        return self.num_waiting(preferred=True) + self.num_waiting(preferred=False)

    def num_waiting(self, *, preferred: bool) -> int:
        """Return the number of tickets of preferred sessions, or of the others."""
        return sum(map(len, self._sessions(preferred=preferred).values()))

    def of_session(self, session: str) -> tuple[Ticket, ...]:
        """Return a session's tickets, oldest first."""
        return (*self._preferred.get(session, ()), *self._others.get(session, ()))

    def put(self, ticket: Ticket) -> None:
        """Add a ticket as its session's newest. A session that had no ticket goes to the end of the queue."""
        if not self._others:
            self._others_wait_since = time.monotonic()
        self._sessions(preferred=ticket.submission.preferred).setdefault(ticket.submission.session, []).append(ticket)

    def remove(self, ticket: Ticket) -> bool:
        """Remove a ticket; return False where it is not in the queue."""
        sessions = self._sessions(preferred=ticket.submission.preferred)
        line = sessions.get(ticket.submission.session, [])
        if ticket not in line:
            return False
        line.remove(ticket)
        if not line:
            del sessions[ticket.submission.session]
        return True

    def take(self, busy: Container[tuple[str, str]], *, preferred_only: bool = False) -> Ticket | None:
        """Remove and return the next ticket whose key is not ``busy``; its session goes to the end of the queue."""
        kinds = (self._preferred,) if preferred_only else (self._preferred, self._others)
        if self._others and time.monotonic() - self._others_wait_since > PATIENCE_S:
            kinds = kinds[::-1]
        for sessions in kinds:
            for session, line in sessions.items():
                for ticket in _newest_document_first(line):
                    if ticket.key not in busy:
                        sessions.move_to_end(session)
                        self.remove(ticket)
                        if sessions is self._others:
                            self._others_wait_since = time.monotonic()
                        return ticket
        return None

    def __iter__(self) -> Iterator[Ticket]:
        """Iterate over all tickets in the order they would be taken if none were added and no key were busy."""
        for sessions in (self._preferred, self._others):
            for turn in itertools.zip_longest(*map(_newest_document_first, sessions.values())):
                yield from (ticket for ticket in turn if ticket is not None)

    def _sessions(self, *, preferred: bool) -> OrderedDict[str, list[Ticket]]:
        return self._preferred if preferred else self._others


def _newest_document_first(line: list[Ticket]) -> list[Ticket]:
    """Return a session's tickets, grouped by document: the last requested first, each group in order of arrival."""
    keys = dict.fromkeys(ticket.key for ticket in reversed(line))
    return [ticket for key in keys for ticket in line if ticket.key == key]
