"""Who may ask: hosts, origins and tokens, with a line in the audit log for each refusal."""

import hmac
import ipaddress
from urllib.parse import SplitResult, urlsplit

import msgspec
import structlog
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lacuna_server.service import connections
from lacuna_server.wire.config import ServerConfig, sent_token
from lacuna_server.wire.protocol import ErrorCode, ServiceError

log = structlog.get_logger("audit")

# The client itself brought these about.
OWN_DOING: frozenset[ErrorCode] = frozenset({"superseded", "cancelled"})


def refused(error: ServiceError, what: str) -> None:
    """Log that ``what``, a path or a kind of message, was refused."""
    if error.code not in OWN_DOING:
        log.warning("refused", code=error.code, what=what)


STATUS_CODES = {"bad_request": 400, "unauthorized": 401, "forbidden": 403}
# The static files of the playground need no token: they are public, and a page cannot send a token to load them.
OPEN_PREFIX = "/playground/"
TOKEN_NEEDED = "a token is needed, as Authorization: Bearer TOKEN"


class Guard:
    """Middleware of every route: refuses foreign hosts, foreign pages and wrong tokens before a body is read.

    If the configuration names a token, every client has to send it. Otherwise ``token`` is optional. Either way
    ``state.trusted`` tells the routes whether the client sent the right one.
    """

    def __init__(self, app: ASGIApp, config: ServerConfig, token: str = "") -> None:
        self._app = app
        self._config = config
        self._token = (config.token or token).encode()

    @property
    def _needs_token(self) -> bool:
        """Whether every client has to send one."""
        return bool(self._config.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer with status 400, 401 or 403."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            self._check_origin(headers)
            trusted = self._admit(headers, scope)
        except ServiceError as error:
            refused(error, scope["path"])
            return await _refusal(error)(scope, receive, send)
        scope.setdefault("state", {})["trusted"] = trusted
        if trusted:
            connections.trust()
        await self._app(scope, receive, send)

    def _admit(self, headers: Headers, scope: Scope) -> bool:
        """Return whether the client sent the token. Raises ServiceError ``unauthorized`` where it has to send one."""
        trusted = hmac.compare_digest(sent_token(headers, scope["query_string"]), self._token) and bool(self._token)
        if self._needs_token and not trusted and not scope["path"].startswith(OPEN_PREFIX):
            raise ServiceError("unauthorized", TOKEN_NEEDED)
        return trusted

    def _check_host(self, headers: Headers) -> None:
        """Refuse an unknown host name: a foreign page may point its own name at this address (DNS rebinding).

        Where every client needs a token there is no need for this check, because such a page has none.
        """
        if self._needs_token:
            return
        name = _parts(f"//{headers.get('host', '')}").hostname or ""
        if name in ("localhost", self._config.host, *self._config.allowed_hosts):
            return
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise ServiceError("forbidden", "this Host is not allowed; add it to allowed_hosts") from None

    def _check_origin(self, headers: Headers) -> None:
        """Refuse foreign pages. Browsers name the page that sends a request; other clients send no such header."""
        origin = headers.get("origin")
        if origin is not None:
            own = _parts(origin).netloc == headers.get("host")
            if not own and origin not in self._config.allowed_origins:
                raise ServiceError("forbidden", "this Origin is not allowed; add it to allowed_origins")
        elif headers.get("sec-fetch-site") in ("cross-site", "same-site") and not (
            headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        ):
            raise ServiceError("forbidden", "a page of another site may link to this service, but not use it")


def _parts(address: str) -> SplitResult:
    """Split an address from a header. Raises ServiceError where it is not an address."""
    try:
        return urlsplit(address)
    except ValueError:
        raise ServiceError("bad_request", "the Host or Origin header is not a valid address") from None


def _refusal(error: ServiceError) -> Response:
    """Return the response to a refused request; Starlette can also send it instead of a websocket's handshake."""
    body = msgspec.json.encode({"error": {"code": error.code, "message": str(error)}})
    headers = {"www-authenticate": "Bearer"} if error.code == "unauthorized" else None
    return Response(body, STATUS_CODES[error.code], headers, "application/json")
