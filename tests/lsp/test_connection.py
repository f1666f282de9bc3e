import asyncio

from lacuna_lsp.client.client_session import ClientSession
from lacuna_lsp.connection import ServiceConnection
from lacuna_server.client.client import Address
from lacuna_server.wire.config import Settings
from lacuna_server.wire.protocol import ServiceError


async def test_a_service_is_started_with_what_the_settings_name() -> None:
    asked: list[str] = []
    told = asyncio.Event()

    async def none(*arguments: str) -> Address:
        asked.extend(arguments)
        told.set()
        raise ServiceError("internal", "there is none")

    session = ClientSession(print)
    session.settings = Settings(model="qwen2.5-coder-0.5b", threads=2, port=0, max_tokens=7)
    running = asyncio.create_task(ServiceConnection(none, session, lambda news: None).run())
    await told.wait()
    running.cancel()
    await asyncio.wait([running])
    assert asked == ["--model", "qwen2.5-coder-0.5b", "--threads", "2", "--port", "0"]


async def test_sending_a_token_unencrypted_gives_a_warning() -> None:
    warned: list[str] = []
    told = asyncio.Event()

    async def far() -> Address:
        return Address("http://gpu.example:1", "secret")

    def warn(line: str) -> None:
        warned.append(line)
        told.set()
        raise ServiceError("cancelled", "this test needs no connection")

    running = asyncio.create_task(ServiceConnection(far, ClientSession(warn), lambda news: None).run())
    await told.wait()
    running.cancel()
    await asyncio.wait([running])
    assert "http://gpu.example:1 unencrypted" in warned[0]
    assert "https://" in warned[0]
    assert "secret" not in warned[0]
