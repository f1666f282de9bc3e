import asyncio

import pytest

from lacuna_model.core.params import FillStats, InfillResult, Snapshot
from lacuna_server.service.sessions import Outbox, Sessions
from lacuna_server.wire import protocol
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import JSON, MSGPACK, Progress, Result, ServerMessage, ServiceError, Step


def step(number: int, id: str = "1") -> Step:
    return Step(id, Snapshot(number, (), ()))


def result(id: str = "1") -> Result:
    return Result(id, InfillResult("ok", (), FillStats()))


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


class Connection:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def leave(self, reason: str, *, finish: bool) -> None:
        assert not finish
        self.reasons.append(reason)


async def test_an_unknown_id_gives_a_new_session_with_another_id() -> None:
    session, resumed = Sessions(ServerConfig()).attach("guessed", Connection())
    assert not resumed
    assert session.id != "guessed"


async def test_a_new_connection_of_a_session_closes_the_older_one() -> None:
    sessions = Sessions(ServerConfig())
    first, second = Connection(), Connection()
    session, _ = sessions.attach("", first)
    sessions.attach(session.id, second)
    assert len(first.reasons) == 1
    sessions.detach(session, first)  # the late end of the old connection changes nothing
    assert session.connection is second


async def test_a_session_is_forgotten_after_the_grace_period() -> None:
    sessions = Sessions(ServerConfig(resume_grace_s=0.01))
    connection = Connection()
    session, _ = sessions.attach("", connection)
    sessions.detach(session, connection)
    await asyncio.sleep(0.05)
    assert len(sessions) == 0
    assert not sessions.attach(session.id, connection)[1]


async def test_the_session_that_is_detached_longest_makes_room_for_a_new_one() -> None:
    sessions = Sessions(ServerConfig(max_sessions=2))
    first, second = Connection(), Connection()
    older, _ = sessions.attach("", first)
    newer, _ = sessions.attach("", second)
    with pytest.raises(ServiceError, match="2 sessions") as caught:
        sessions.attach("", Connection())
    assert caught.value.code == "overloaded"
    sessions.detach(older, first)
    await asyncio.sleep(0.01)
    sessions.detach(newer, second)
    sessions.attach("", Connection())
    assert sessions.attach(newer.id, Connection())[1]


async def test_sessions_of_strangers_leave_room_for_those_with_the_token() -> None:
    sessions = Sessions(ServerConfig(max_sessions=16))
    strangers = [Connection() for _ in range(14)]
    opened = [sessions.attach("", stranger)[0] for stranger in strangers]
    with pytest.raises(ServiceError, match="14 sessions"):
        sessions.attach("", Connection())
    own = Connection()
    kept, _ = sessions.attach("", own, trusted=True)
    sessions.detach(kept, own)
    with pytest.raises(ServiceError, match="14 sessions"):  # also where only an own session could make room
        sessions.attach("", Connection())
    for _ in range(2):
        sessions.detach(opened[0], strangers[0])
        sessions.attach("", Connection(), trusted=True)
    assert sessions.attach(kept.id, Connection(), trusted=True)[1]
