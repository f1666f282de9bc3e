import httpx2
import pytest
from starlette.responses import PlainTextResponse
from tests.server.live_service import live
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from lacuna_server.service import guard
from lacuna_server.service.guard import Guard
from lacuna_server.wire.config import ServerConfig


async def ask(config: ServerConfig, headers: dict[str, str], query: str = "") -> int:
    """The status of a GET request that the guard accepts or refuses."""
    transport = httpx2.ASGITransport(app=Guard(PlainTextResponse("the page"), config))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8377") as client:
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        response = await client.get(f"/?{query}", headers=sent)
    assert ("the page" in response.text) == (response.status_code == 200)
    return response.status_code


HOST = {"host": "127.0.0.1:8377"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:8377"}, 200),
        ({"host": "127.0.0.1:8377"}, 200),
        ({"host": "[::1]:8377"}, 200),
        ({"host": "box"}, 200),
        ({"host": "evil.example:8377"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": ""}, 403),
        (HOST | {"origin": "http://127.0.0.1:8377"}, 200),
        (HOST | {"origin": "vscode-webview://x"}, 200),
        (HOST | {"origin": "http://127.0.0.1:9999"}, 403),
        (HOST | {"origin": "http://evil.example"}, 403),
        (HOST | {"origin": "null"}, 403),
        (HOST | {"sec-fetch-site": "same-origin"}, 200),
        (HOST | {"sec-fetch-site": "none"}, 200),
        (HOST | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, 403),
        (HOST | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        (HOST | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
    ],
    ids=str,
)
async def test_requests_from_foreign_hosts_and_pages_are_refused(headers: dict[str, str], status: int) -> None:
    config = ServerConfig(allowed_hosts=("box",), allowed_origins=("vscode-webview://x",))
    assert await ask(config, headers) == status


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"authorization": "Bearer secret"}, "", 200),
        ({"authorization": "bearer  secret"}, "", 200),
        ({}, "token=secret", 200),
        ({}, "", 401),
        ({"authorization": "Bearer secre"}, "", 401),
        ({"authorization": "Bearer sécret"}, "", 401),
        ({"authorization": "Basic secret"}, "", 401),
        ({"authorization": "Bearer wrong"}, "token=secret", 401),
        ({}, "token=", 401),
        ({}, "token=wrong&token=secret", 401),
    ],
    ids=str,
)
async def test_every_request_needs_the_token(headers: dict[str, str], query: str, status: int) -> None:
    assert await ask(ServerConfig(token="secret"), HOST | headers, query) == status
    assert await ask(ServerConfig(token="secret"), {"host": "gpu-box"} | headers, query) == status


async def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, wanted: bytes) -> bool:
        compared.append((given, wanted))
        return False

    monkeypatch.setattr(guard.hmac, "compare_digest", compare)
    assert await ask(ServerConfig(token="secret"), HOST | {"authorization": "Bearer secret"}) == 401
    assert compared == [(b"secret", b"secret")]


async def test_a_websocket_is_refused_in_its_handshake(scripted_engine: object) -> None:
    async with live(token="secret") as (service, address):
        for name, value, status in (
            ("Authorization", "Bearer wrong", 401),
            ("A", "", 401),
            ("Origin", "http://e", 403),
        ):
            with pytest.raises(InvalidStatus) as caught:
                await connect(f"ws://{address}/v1/ws", additional_headers={name: value}, proxy=None)
            assert caught.value.response.status_code == status
        assert service.status().sessions == 0
