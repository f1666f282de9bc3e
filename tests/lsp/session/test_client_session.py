"""What a session says to its user."""

from lacuna_lsp.session.client_session import REMEMBERED, ClientSession
from lacuna_server.client.client import Address


async def locate(*arguments: str) -> Address:
    raise AssertionError


async def test_a_line_is_said_once_and_only_the_last_ones_are_remembered() -> None:
    said = list[str]()
    session = ClientSession(locate, lambda news: None, said.append)
    for number in (1, 1, 2, 1):
        session.say_once(f"outage {number}")
    assert said == ["outage 1", "outage 2"]
    for number in range(REMEMBERED):
        session.say_once(f"another {number}")
    session.say_once("outage 1")
    assert said.count("outage 1") == 2
