from lacuna_model.core.params import FillStats, InfillResult, Snapshot
from lacuna_server.service.sessions import Outbox
from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import JSON, MSGPACK, Progress, Result, ServerMessage, Step


def step(number: int, id: str = "1") -> Step:
    return Step(id, Snapshot(number, (), ()))


def result(id: str = "1") -> Result:
    return Result(id, InfillResult("ok", "", (), FillStats()))


async def sent(outbox: Outbox) -> list[ServerMessage]:
    messages = []
    while not outbox.empty:
        messages.append(protocol.decode_server(await outbox.take()))
    return messages


async def test_only_the_latest_step_and_progress_are_kept() -> None:
    outbox = Outbox(JSON, 1000)
    for number in range(3):
        outbox.put(step(number))
        outbox.put(step(number, id="3"))
        outbox.put(Progress("2", "queued", number))
    assert await sent(outbox) == [step(2), step(2, id="3"), Progress("2", "queued", 2)]


async def test_the_last_step_is_sent_before_the_answer_and_nothing_after_it() -> None:
    outbox = Outbox(MSGPACK, 1000)
    outbox.put(Progress("1", "running"))
    outbox.put(step(1))
    outbox.put(step(1, id="2"))
    outbox.put(result())
    assert await sent(outbox) == [step(1), result(), step(1, id="2")]
