import asyncio

import pytest

from lacuna_lsp.engine.connection import ServiceConnection
from lacuna_server.client.client import Address
from lacuna_server.wire.protocol import ServiceError
from lacuna_server.wire.settings import Settings


async def nowhere() -> Address:
    raise ConnectionError


@pytest.mark.parametrize(
    ("path", "workspace"),
    [
        ("/work/app/main.py", "/work/app"),
        ("/work/app/lib/deep/x.py", "/work/app/lib"),
        ("/work/application/x.py", ""),
        ("Untitled-1", ""),
    ],
)
def test_a_document_belongs_to_the_innermost_folder_around_it(path: str, workspace: str) -> None:
    engine = ServiceConnection(nowhere, list, lambda news: None)
    engine.folders = ["/work/app", "/work/app/lib", "/other"]
    assert engine.workspace(path) == workspace


async def test_a_service_is_started_with_what_the_settings_name() -> None:
    asked: list[str] = []
    told = asyncio.Event()

    async def none(*arguments: str) -> Address:
        asked.extend(arguments)
        told.set()
        raise ServiceError("internal", "there is none")

    settings = Settings(model="qwen2.5-coder-0.5b", threads=2, port=0, max_tokens=7)
    running = asyncio.create_task(ServiceConnection(none, list, lambda news: None, print, lambda: settings).run())
    await told.wait()
    running.cancel()
    await asyncio.wait([running])
    assert asked == ["--model", "qwen2.5-coder-0.5b", "--threads", "2", "--port", "0"]


def test_no_workspace_is_named_where_none_is_to_be_read() -> None:
    engine = ServiceConnection(nowhere, list, lambda news: None, print, lambda: Settings(workspace=False))
    engine.folders = ["/work"]
    assert engine.workspace("/work/main.py") == ""


async def test_sending_a_token_unencrypted_gives_a_warning() -> None:
    warned: list[str] = []
    told = asyncio.Event()

    async def far() -> Address:
        return Address("http://gpu.example:1", "secret")

    def warn(line: str) -> None:
        warned.append(line)
        told.set()
        raise ServiceError("cancelled", "this test needs no connection")

    running = asyncio.create_task(ServiceConnection(far, list, lambda news: None, warn).run())
    await told.wait()
    running.cancel()
    await asyncio.wait([running])
    assert "http://gpu.example:1 unencrypted" in warned[0]
    assert "https://" in warned[0]
    assert "secret" not in warned[0]
