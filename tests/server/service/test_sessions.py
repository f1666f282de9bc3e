import asyncio

import pytest

from lacuna_server.service.sessions import Sessions
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Open, ServiceError


class Connection:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def leave(self, reason: str, *, finish: bool) -> None:
        assert not finish
        self.reasons.append(reason)


async def test_a_session_is_resumed_with_its_documents() -> None:
    sessions = Sessions(ServerConfig())
    first, second = Connection(), Connection()
    session, resumed = sessions.attach("", first)
    assert not resumed
    session.documents.open(Open("a", "text"))
    sessions.detach(session, first)
    assert sessions.attached == ()
    assert sessions.attach(session.id, second) == (session, True)
    assert sessions.num_documents == 1
    assert sessions.attached == (session,)


async def test_an_unknown_id_gives_a_new_session_of_another_id() -> None:
    session, resumed = Sessions(ServerConfig()).attach("guessed", Connection())
    assert not resumed
    assert session.id != "guessed"


async def test_the_older_connection_of_a_session_has_to_leave() -> None:
    sessions = Sessions(ServerConfig())
    first, second = Connection(), Connection()
    session, _ = sessions.attach("", first)
    sessions.attach(session.id, second)
    assert len(first.reasons) == 1
    sessions.detach(session, first)  # its end comes late and changes nothing
    assert session.connection is second


async def test_a_session_is_forgotten_after_the_grace() -> None:
    sessions = Sessions(ServerConfig(resume_grace_s=0.01))
    connection = Connection()
    session, _ = sessions.attach("", connection)
    sessions.detach(session, connection)
    await asyncio.sleep(0.05)
    assert len(sessions) == 0
    assert not sessions.attach(session.id, connection)[1]


async def test_where_there_are_too_many_the_one_longest_alone_makes_room() -> None:
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
