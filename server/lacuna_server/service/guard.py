"""Who may talk to the service: the hosts, pages and tokens that requests name."""

import hmac
import ipaddress
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import ServiceError

STATUS_CODES = {"bad_request": 400, "unauthorized": 401, "forbidden": 403}
# What the playground's page is made of: the same everywhere, and a page cannot send a token with it.
OPEN_PREFIX = "/playground/"


class Guard:
    """Stands before every route: refuses foreign hosts, foreign pages and wrong tokens before anything is read.

    A token that the configuration names is asked of everybody. Another one is asked of nobody: ``state.trusted`` says
    whether it was sent, and a route may do more for those who did.
    """

    def __init__(self, app: ASGIApp, config: ServerConfig, token: str = "") -> None:
        self._app = app
        self._config = config
        self._token = (config.token or token).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 400, 401 or 403."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            self._check_origin(headers)
            trusted = self._sent_token(headers, scope)
            if self._config.token and not trusted and not scope["path"].startswith(OPEN_PREFIX):
                raise ServiceError("unauthorized", "a token is needed, as Authorization: Bearer TOKEN")
        except ServiceError as error:
            return await _refusal(error)(scope, receive, send)
        scope.setdefault("state", {})["trusted"] = trusted
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        """A page that points a name of its own at this address gives itself away by that name (DNS rebinding).

        Where a token is asked for, such a page has none.
        """
        if self._config.token:
            return
        name = _parts(f"//{headers.get('host', '')}").hostname or ""
        if name in ("localhost", self._config.host, *self._config.allowed_hosts):
            return
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise ServiceError("forbidden", "this Host is not allowed; name it in allowed_hosts") from None

    def _check_origin(self, headers: Headers) -> None:
        """Browsers say which page asks: it has to be this service's own; other clients say nothing."""
        origin = headers.get("origin")
        if origin is not None:
            own = _parts(origin).netloc == headers.get("host")
            if not own and origin not in self._config.allowed_origins:
                raise ServiceError("forbidden", "this Origin is not allowed; name it in allowed_origins")
        elif headers.get("sec-fetch-site") in ("cross-site", "same-site") and not (
            headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        ):
            raise ServiceError("forbidden", "another page may link to this service, not use it")

    def _sent_token(self, headers: Headers, scope: Scope) -> bool:
        """Compared in constant time; a page, which cannot set headers for a websocket, sends it as ``?token=``."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token)
        return same and bool(self._token)


def _parts(address: str) -> SplitResult:
    """The parts of an address that a header names; raises ServiceError where it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        raise ServiceError("bad_request", "Host or Origin is no address") from None


def _refusal(error: ServiceError) -> Response:
    """The answer, which Starlette also knows how to send in place of a websocket's handshake."""
    body = msgspec.json.encode({"error": {"code": error.code, "message": str(error)}})
    headers = {"www-authenticate": "Bearer"} if error.code == "unauthorized" else None
    return Response(body, STATUS_CODES[error.code], headers, "application/json")
