"""Builds the web application, the websocket and the HTTP routes behind one guard, and the server that runs it."""

import contextlib
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from lacuna_server.http.routes import routes
from lacuna_server.service.guard import Guard
from lacuna_server.service.incoming import Bodies, websocket_protocol
from lacuna_server.service.service import Service
from lacuna_server.service.websocket import Conversation
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.shares import Pool

WEBSOCKET_PATH = "/v1/ws"
# How long responses that are still being sent may hold up the end.
LAST_RESPONSES_S = 3


def build(service: Service, token: str = "") -> Starlette:
    """The application; the service is started and closed by whoever runs it.

    ``token`` is what this user's own clients send where the configuration names none.
    """

    async def converse(websocket: WebSocket) -> None:
        await Conversation(websocket, service).run()

    return Starlette(
        routes=[WebSocketRoute(WEBSOCKET_PATH, converse), *routes(service)],
        middleware=[
            Middleware(Guard, config=service.config, token=token),
            Middleware(RequestBodyLimitMiddleware, max_body_size=service.config.max_message_bytes),
            Middleware(Touch, service=service),
        ],
    )


class Touch:
    """Notes that somebody has asked for something, before and after, so that the service does not end for idleness."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what came through the guard."""
        self._service.touch()
        try:
            await self._app(scope, receive, send)
        finally:
            self._service.touch()


class WebServer(uvicorn.Server):
    """Leaves the signals to the service, which has things to end before its connections are closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def web_server(app: ASGIApp, config: ServerConfig) -> WebServer:
    """The server that runs the application on sockets it is given."""
    pool = Pool(config.max_held_bytes // 2)  # the other half is for what sessions have
    return WebServer(
        uvicorn.Config(
            Bodies(app, pool),
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
            timeout_graceful_shutdown=LAST_RESPONSES_S,
        )
    )
