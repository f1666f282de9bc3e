"""The load test of strangers in small: this user's own editor gets an answer to everything while it lasts."""

import asyncio

import pytest
from tests.server.live_service import live
from tests.server.strangers import Crowd, crowded, type_on

from lacuna_server.client.client import Address
from lacuna_server.daemon import app

pytestmark = pytest.mark.usefixtures("scripted_engine")
TOKEN = "a-token-of-this-start"


async def test_the_own_editor_is_served_while_strangers_take_what_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "most_connections", lambda: 40)
    async with live(token_of_start=TOKEN, max_sessions=16, max_queued=4) as (service, address):
        url = f"http://{address}"
        with crowded(url, Crowd(sessions=30, sockets=60, edits=20_000), 60.0) as strangers:
            while len(service.sessions) < 14:  # all that are not reserved
                await asyncio.sleep(0.05)
            assert await type_on(Address(url, TOKEN), 2.0)
            assert sum(not session.trusted for session in service.sessions.attached) <= 14
            assert strangers.poll() is None
