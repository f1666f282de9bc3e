"""The messages that a fill of several documents sends, and their order."""

import asyncio

from lacuna_model.core.params import InfillRequest, Region, Snapshot
from lacuna_server.service.fills import RunningInfill
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Error, Infill, ServerMessage, Target
from lacuna_server.worker.scheduler import Scheduler, Submission, Ticket


class OneTicket(Scheduler):
    """A scheduler with a single ticket, through which the test sends events."""

    def __init__(self, request: InfillRequest) -> None:
        super().__init__(ServerConfig())
        self.ticket = Ticket(1, Submission(request, "s", "a", snapshots=True), withdraw=lambda ticket: None)

    def submit(self, submission: Submission) -> Ticket:
        return self.ticket


async def test_nothing_is_sent_after_the_answer() -> None:
    told: list[ServerMessage] = []
    request = InfillRequest("text", (Region(0, 0),))
    scheduler = OneTicket(request)
    message = Infill("1", (Target("a", 1, request.regions),), snapshots=True)
    fill = RunningInfill(message, [request], scheduler, session="s", at_once=1, preferred=False, send=told.append)
    await asyncio.sleep(0.01)
    scheduler.ticket.tell(Snapshot(1, ("",), ((),)))
    fill.stop()
    await fill.ended()
    assert [type(one) for one in told] == [Error]
