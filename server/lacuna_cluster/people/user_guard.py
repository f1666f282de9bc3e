"""The guard of an ingress: names the user of each request by the token, or by the header that an OIDC proxy sets."""

import hmac
from collections.abc import Mapping
from urllib.parse import parse_qs

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lacuna_cluster.people import users
from lacuna_cluster.people.users import CALLER, Caller, User
from lacuna_server.service.guard import OPEN_PREFIX, TOKEN_NEEDED, Guard, sent_token
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import ServiceError

HEALTH = "/health"


class UserGuard(Guard):
    """Middleware that sets ``CALLER``, and refuses unknown users where users are listed.

    ``people`` may change while the ingress runs. The header ``user_header`` counts only in a request that also sends
    the proxy's own token, ``proxy_token``: otherwise anybody who reaches the ingress could claim to be anybody.
    """

    def __init__(
        self,
        app: ASGIApp,
        config: ServerConfig,
        people: Mapping[str, User],
        *,
        user_header: str = "",
        proxy_token: str = "",
    ) -> None:
        super().__init__(app, config)
        self._people = people
        self._user_header = user_header
        self._proxy_token = proxy_token

    @property
    def _needs_token(self) -> bool:
        return bool(self._people or self._user_header)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as that of its caller, or answer with status 400, 401 or 403."""
        structlog.contextvars.clear_contextvars()
        CALLER.set(Caller(model=_model(scope)))
        await super().__call__(scope, receive, send)

    def _admit(self, headers: Headers, scope: Scope) -> bool:
        """Return whether the caller is a user. Raises ServiceError ``unauthorized`` where it has to be one."""
        user = self._user(headers, scope)
        if user:
            CALLER.set(Caller(user, _model(scope)))
            structlog.contextvars.bind_contextvars(user=user)
        elif self._needs_token and not scope["path"].startswith(OPEN_PREFIX) and scope["path"] != HEALTH:
            raise ServiceError("unauthorized", TOKEN_NEEDED)
        return bool(user)

    def _user(self, headers: Headers, scope: Scope) -> str:
        token = sent_token(headers, scope)
        if self._user_header and hmac.compare_digest(users.hashed(token), self._proxy_token):
            name = headers.get(self._user_header, "")
            listed = not self._people or name in self._people
            return name if listed and users.NAME.fullmatch(name) else ""
        return users.find(self._people, token) if token else ""


def _model(scope: Scope) -> str:
    """Return the model that a request names with ``?model=``, "" for none."""
    if scope["type"] not in ("http", "websocket"):
        return ""
    query: str = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("model", [""])[0]
