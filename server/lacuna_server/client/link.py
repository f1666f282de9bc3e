"""Keeps a websocket connection to the service: connects again when it breaks."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from lacuna_server.client.starting import Address
from lacuna_server.wire import protocol
from lacuna_server.wire.protocol import ServerMessage, ServiceError
from lacuna_server.wire.security import is_loopback

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
LONGEST_AFTER_REFUSAL_S = 30.0
MAX_FRAME_BYTES = 64 * 1024 * 1024
PATH = "/v1/ws"
REFUSALS: dict[int, tuple[protocol.ErrorCode, str]] = {
    401: ("unauthorized", "does not take the token"),
    403: ("forbidden", "forbids it (403)"),
}


class Speaker(Protocol):
    """The user of the link, which is told of messages and of connections made and lost."""

    async def greet(self, connection: ClientConnection, address: Address) -> None:
        """Begin the conversation on a new connection. Raises ServiceError where the service refuses it."""
        ...

    async def send(self, connection: ClientConnection) -> None:
        """Send what there is to send, until cancelled. Raises ConnectionClosed."""
        ...

    def heard(self, message: ServerMessage) -> None:
        """Handle a message of the service."""
        ...

    def broken(self, why: ServiceError | OSError, *, lately: bool) -> None:
        """Handle a connection that broke or could not be made; ``lately``: one stood a short time ago."""
        ...

    def gave_up(self, why: ServiceError | OSError) -> None:
        """Handle that the service refuses, or was unreachable for long."""
        ...


async def keep(
    speaker: Speaker, locate: Address | Callable[[], Awaitable[Address]], give_up_s: float, *, reconnects: bool
) -> None:
    """Connect again and again, until the service refuses or has been unreachable for ``give_up_s`` seconds.

    One that ``reconnects`` tells its speaker so, and tries again.
    """
    pause, lost, stood = FIRST_PAUSE_S, time.monotonic(), False
    while True:
        where, why = "the service", ": it closed the connection"
        longest, refusal = LONGEST_PAUSE_S, None
        try:
            address = locate if isinstance(locate, Address) else await locate()
            where = address.url
            async with await _open(address) as connection:
                await speaker.greet(connection, address)
                pause, lost, stood = FIRST_PAUSE_S, 0.0, True
                sending = asyncio.create_task(speaker.send(connection))
                try:
                    async for frame in connection:
                        speaker.heard(protocol.decode_server(frame))
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
        except ServiceError as error:
            longest, refusal = LONGEST_AFTER_REFUSAL_S, error
        except ConnectionRefusedError:
            why = ""
        except (OSError, WebSocketException) as error:
            why = f": {error}"
        reason = refusal or ConnectionError(f"{where} does not answer{why}")
        lost = lost or time.monotonic()
        given_up = refusal is not None or time.monotonic() - lost > give_up_s
        stood = stood and not given_up
        speaker.broken(reason, lately=stood)
        if given_up:
            speaker.gave_up(reason)
            if not reconnects:
                return
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, longest)


async def _open(address: Address) -> ClientConnection:
    """Open a connection.

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
