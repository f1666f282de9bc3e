import asyncio

import pytest

from lacuna_lsp.engine.connection import Engine
from lacuna_server.client.client import Address
from lacuna_server.wire.protocol import ServiceError


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
    engine = Engine(nowhere, list, lambda news: None)
    engine.folders = ["/work/app", "/work/app/lib", "/other"]
    assert engine.workspace(path) == workspace


async def test_sending_a_token_unencrypted_gives_a_warning() -> None:
    warned: list[str] = []
    told = asyncio.Event()

    async def far() -> Address:
        return Address("http://gpu.example:1", "secret")

    def warn(line: str) -> None:
        warned.append(line)
        told.set()
        raise ServiceError("cancelled", "this test needs no connection")

    running = asyncio.create_task(Engine(far, list, lambda news: None, warn).run())
    await told.wait()
    running.cancel()
    await asyncio.wait([running])
    assert "http://gpu.example:1 unencrypted" in warned[0]
    assert "https://" in warned[0]
    assert "secret" not in warned[0]
