"""What is kept of a progress bar that has ended."""

import asyncio
import json

from lsprotocol import types

from lacuna_lsp.client.news import News
from lacuna_lsp.server import Server
from lacuna_server.client.client import Address


async def test_nothing_is_kept_of_a_progress_bar_that_has_ended() -> None:
    sent = asyncio.Queue[dict[str, object]]()

    class Writer:
        def write(self, data: bytes) -> None:
            sent.put_nowait(json.loads(data.partition(b"\r\n\r\n")[2]))

    async def locate(*arguments: str) -> Address:
        raise AssertionError

    server = Server(locate)
    server.protocol.set_writer(Writer())
    server.protocol.client_capabilities = types.ClientCapabilities(
        window=types.WindowClientCapabilities(work_done_progress=True)
    )
    showing = asyncio.create_task(server.loading.run())
    for _ in range(3):
        server.loading.hear(News("loading"))
        server.loading.hear(News("ready"))
        kinds = list[object]()
        while "end" not in kinds:
            message = await sent.get()
            if message["method"] == types.WINDOW_WORK_DONE_PROGRESS_CREATE:
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": None}
                server.protocol.handle_message(server.protocol.structure_message(answer))
            else:
                kinds.append(message["params"]["value"]["kind"])  # type: ignore[index]
    showing.cancel()
    assert server.work_done_progress.tokens == {}
