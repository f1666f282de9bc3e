"""Builds the web application (websocket and HTTP routes, protected by one guard) and the server that runs it."""

import contextlib
import socket
from collections.abc import Iterator, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from lacuna_server.daemon.serving import BACKLOG
from lacuna_server.http import addresses
from lacuna_server.http.addresses import routes
from lacuna_server.http.metrics import Metrics
from lacuna_server.service.connections import Connections, charging, http_protocol, most_connections, websocket_protocol
from lacuna_server.service.guard import Guard
from lacuna_server.service.own_first import OwnFirst
from lacuna_server.service.service import Service
from lacuna_server.service.websocket import Conversation
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.documents import Pool

WEBSOCKET_PATH = "/v1/ws"
# The time that unfinished responses have when the server ends.
LAST_RESPONSES_S = 3
# uvicorn accepts so many connections in one turn of the event loop, and many more may wait.
ACCEPTED_AT_ONCE = 1


def build(
    service: Service,
    token: str = "",
    *,
    guard: Middleware | None = None,
    metrics: Metrics | None = None,
    instead: Sequence[BaseRoute] = (),
) -> Starlette:
    """Build the application. The caller starts and closes the service.

    ``token`` is the token of this user's own clients where the configuration names none; ``guard`` replaces the guard
    that compares it. Routes ``instead`` take the place of those with the same path.
    """

    async def converse(websocket: WebSocket) -> None:
        await Conversation(websocket, service).run()

    origins = service.config.allowed_origins
    pages = Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"])
    return Starlette(
        routes=[
            *instead,
            WebSocketRoute(WEBSOCKET_PATH, converse),
            *routes(service, metrics),
            WebSocketRoute("/{path:path}", addresses.unknown_websocket),
        ],
        middleware=[
            *([pages] if origins else []),  # first, since what a browser asks beforehand has no token
            guard or Middleware(Guard, config=service.config, token=token),
            Middleware(RequestBodyLimitMiddleware, max_body_size=service.config.max_message_bytes),
            Middleware(touching, service=service),
        ],
        exception_handlers=addresses.HANDLERS,
    )


def touching(app: ASGIApp, service: Service) -> ASGIApp:
    """Return an application that marks the service as used before and after each request: it does not end as idle."""

    async def touched(scope: Scope, receive: Receive, send: Send) -> None:
        service.touch()
        try:
            await app(scope, receive, send)
        finally:
            service.touch()

    return touched


class WebServer(uvicorn.Server):
    """A server that leaves signals to the service, which ends its work before connections are closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


def web_server(app: ASGIApp, config: ServerConfig, own_first: OwnFirst | None = None) -> WebServer:
    """Return the server that runs the application on given sockets. ``own_first`` is the selector of its event loop."""
    pool = Pool(config.max_held_bytes // 2)  # the other half of the bytes is for sessions
    connections = Connections(most_connections(), own_first or OwnFirst(), silent_s=config.head_timeout_s)
    return WebServer(
        uvicorn.Config(
            charging(app, pool),
            http=http_protocol(connections),
            ws=websocket_protocol(pool),
            ws_max_size=config.max_message_bytes,
            ws_ping_interval=config.ping_interval_s or None,
            ws_ping_timeout=config.ping_timeout_s or None,
            ws_per_message_deflate=False,
            ssl_certfile=config.cert or None,
            ssl_keyfile=config.key or None,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=LAST_RESPONSES_S,
        )
    )
