"""The users of a cluster: a hashed token and a quota for each, the guard that names them, what they use."""

import hashlib
import hmac
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import parse_qs

import msgspec
import structlog
from msgspec import Meta
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as Metric
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lacuna_cluster.links import IngressFigures
from lacuna_model.core.params import FillStats
from lacuna_server.service.guard import OPEN_PREFIX, TOKEN_NEEDED, Guard
from lacuna_server.wire.config import ConfigError, ServerConfig, check_private, read_toml, sent_token
from lacuna_server.wire.protocol import ServiceError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user: the hash of the token ("": known to the OIDC proxy only), and how many requests a minute (0: any)."""

    token: Annotated[str, Meta(pattern=r"^(sha256:[0-9a-f]{64})?\Z")] = ""
    requests_per_minute: Annotated[int, Meta(ge=0)] = 0


class Caller(NamedTuple):
    """Who makes a request: the user's name ("" where no users are listed), and the model that it names ("": the first).

    The guard sets it for the task of a request or connection; the tasks that this one starts inherit it.
    """

    user: str = ""
    model: str = ""


NOBODY = Caller()
CALLER: ContextVar[Caller] = ContextVar("caller", default=NOBODY)


def hashed(token: str | bytes) -> str:
    """Return the hash of a token, as the file has it.

    Tokens are random and long, so that one pass of SHA-256 without salt suffices: nobody can try them all.
    """
    return "sha256:" + hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def read(file: Path) -> dict[str, User]:
    """Return the users of a file by name. Raises ConfigError with one line where it cannot be used.

    The file has a table for each user: ``[alice]``, ``token = "sha256:..."``, ``requests_per_minute = 600``.
    """
    check_private(file)
    tables = read_toml(file)
    wrong = [name for name in tables if not NAME.fullmatch(name)]
    if wrong:
        raise ConfigError(f"{file}: {wrong[0]!r} is not a user's name: letters, digits and ._@+- are allowed")
    try:
        users = msgspec.convert(tables, dict[str, User])
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}") from None
    if not users:
        raise ConfigError(f"{file}: it names no user")
    hashes = [user.token for user in users.values() if user.token]
    if len(set(hashes)) < len(hashes):
        raise ConfigError(f"{file}: two users have the same token")
    return users


def add(file: Path, name: str, requests_per_minute: int) -> str:
    """Add a user to a file, which is made if there is none, and return the new token; only its hash is kept.

    Raises ConfigError where the name is not allowed or taken.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not a user's name: letters, digits and ._@+- are allowed")
    if file.exists():
        check_private(file)
        if read_toml(file) and name in read(file):
            raise ConfigError(f"{file}: there is a user {name} already; delete the table to give a new token")
    token = secrets.token_urlsafe(32)
    # The last line may have no end.
    table = f'\n["{name}"]\ntoken = "{hashed(token)}"\nrequests_per_minute = {requests_per_minute}\n'
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(descriptor, "a", encoding="utf-8") as stream:
        stream.write(table)
    return token


def find(users: Mapping[str, User], token: bytes) -> str:
    """Return the name of the user with this token, "" for none. Every hash is compared, in constant time."""
    given, found = hashed(token), ""
    for name, user in users.items():
        if hmac.compare_digest(user.token.encode(), given.encode()):
            found = name
    return found


MINUTE_S = 60


class Usage:
    """Counts the requests of each user, in the present minute against the quota, and in all for Prometheus.

    Every ingress counts what passes through it, and learns the counts of the others about once a second. So a user who
    asks several of them may exceed the quota by what they use in that second.
    """

    def __init__(self, users: Mapping[str, User], registry: CollectorRegistry) -> None:
        self.users = users
        self._minute = 0
        self._used: Counter[str] = Counter()
        self._elsewhere: Counter[str] = Counter()
        self._requests = Metric("lacuna_user_requests", "Fills of a user", ["user", "outcome"], registry=registry)
        self._tokens = Metric("lacuna_user_tokens", "Tokens of delivered fills", ["user"], registry=registry)
        self._refused = Metric("lacuna_user_over_quota", "Requests over the quota", ["user"], registry=registry)

    def admit(self, user: str) -> None:
        """Count a request of a user. Raises ServiceError ``rate_limited`` where it exceeds the quota."""
        self._turn_minute()
        quota = self.users[user].requests_per_minute if user in self.users else 0
        if quota and self._used[user] + self._elsewhere[user] >= quota:
            self._refused.labels(user).inc()
            left_ms = round((MINUTE_S - time.time() % MINUTE_S) * 1e3)
            raise ServiceError("rate_limited", f"more than {quota} requests in this minute", max(left_ms, 1))
        self._used[user] += 1

    def ended(self, user: str, outcome: str, stats: FillStats) -> None:
        """Count the end of a request."""
        if user:
            self._requests.labels(user, outcome).inc()
            self._tokens.labels(user).inc(stats.tokens)

    def figures(self, replica: str) -> IngressFigures:
        """Return what the other ingresses need to know."""
        self._turn_minute()
        return IngressFigures(replica, self._minute, dict(self._used))

    def learn(self, others: Iterable[IngressFigures]) -> None:
        """Take over the counts of the other ingresses."""
        self._turn_minute()
        counts = (Counter(other.used) for other in others if other.minute == self._minute)
        self._elsewhere = sum(counts, Counter[str]())

    def _turn_minute(self) -> None:
        if (minute := int(time.time() // MINUTE_S)) != self._minute:
            self._minute = minute
            self._used.clear()
            self._elsewhere.clear()


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
        token = sent_token(headers, scope["query_string"])
        if self._user_header and hmac.compare_digest(hashed(token), self._proxy_token):
            name = headers.get(self._user_header, "")
            listed = not self._people or name in self._people
            return name if listed and NAME.fullmatch(name) else ""
        return find(self._people, token) if token else ""


def _model(scope: Scope) -> str:
    """Return the model that a request names with ``?model=``, "" for none."""
    if scope["type"] not in ("http", "websocket"):
        return ""
    query: str = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("model", [""])[0]
