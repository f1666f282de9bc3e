"""Opens a websocket to the service."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from lacuna_server.client.starting import Address
from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import ServiceError
from lacuna_server.wire.security import is_loopback

MAX_FRAME_BYTES = 64 * 1024 * 1024
PATH = "/v1/ws"
REFUSALS: dict[int, tuple[protocol.ErrorCode, str]] = {
    401: ("unauthorized", "does not take the token"),
    403: ("forbidden", "forbids it (403)"),
}


async def opened(address: Address) -> ClientConnection:
    """Return a connection.

    Raises ServiceError for a refusal that is final, and OSError or WebSocketException where another attempt may help.
    """
    host = urlsplit(address.url).hostname or ""
    by: dict[str, Any] = {"unix": True, "path": address.socket} if Path(address.socket).is_socket() else {}
    try:
        return await connect(
            f"ws{address.url.removeprefix('http').rstrip('/')}{PATH}",
            subprotocols=[Subprotocol(protocol.MSGPACK)],
            additional_headers={"Authorization": f"Bearer {address.token}"} if address.token else None,
            max_size=MAX_FRAME_BYTES,
            compression=None,
            proxy=None if is_loopback(host) else True,
            **by,
        )
    except InvalidStatus as error:
        if (refusal := REFUSALS.get(error.response.status_code)) is None:
            raise
        code, what = refusal
        if code == "unauthorized" and not address.token:
            what = "asks for a token"
        raise ServiceError(code, f"{address.url} {what}") from None
