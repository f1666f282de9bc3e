import asyncio

import pytest

from lacuna_server.service.service import Sessions
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import ServiceError


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
