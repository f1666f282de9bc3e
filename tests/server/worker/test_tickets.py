import itertools

import pytest

from lacuna_model.core.params import InfillRequest, Region
from lacuna_server.wire.frames import Submission
from lacuna_server.worker import tickets
from lacuna_server.worker.tickets import FairQueue, Ticket


def ticket(id: int, session: str, document: str = "", *, preferred: bool = False) -> Ticket:
    request = InfillRequest("", (Region(0, 0),))
    submission = Submission(request, session, document or str(id), preferred=preferred)
    return Ticket(id, submission, withdraw=lambda ticket, why: None)


def filled(*tickets: Ticket) -> FairQueue:
    queue = FairQueue()
    for one in tickets:
        queue.put(one)
    return queue


def ids(queue: FairQueue, busy: tuple[tuple[str, str], ...] = ()) -> list[int]:
    taken = []
    while (one := queue.take(busy)) is not None:
        taken.append(one.id)
    return taken


def test_another_request_is_taken_although_preferred_ones_never_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "PATIENCE_S", 0.01)
    queue, taken = filled(ticket(0, "other")), set[int]()
    for id in itertools.count(1):
        queue.put(ticket(id, "own", preferred=True))
        one = queue.take(())
        assert one is not None
        taken.add(one.id)
        if one.id == 0:
            break
    assert len(taken) > 1


def test_a_request_for_a_busy_document_waits_without_blocking_others() -> None:
    queue = filled(ticket(1, "a", "x"), ticket(2, "a", "y"), ticket(3, "b", "y"))
    assert ids(queue, (("a", "y"),)) == [1, 3]
    assert len(queue) == 1
    assert ids(queue) == [2]
