"""The users of a cluster: a file with a hashed token and a quota for each, or the header of an OIDC proxy."""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from lacuna_server.wire import private_files
from lacuna_server.wire.config import ConfigError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
HASH = re.compile(r"sha256:[0-9a-f]{64}")


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user: the hash of the token ("": known to the OIDC proxy only), and how many requests a minute (0: any)."""

    token: Annotated[str, Meta(pattern=rf"^({HASH.pattern})?$")] = ""
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
    private_files.check_private(file)
    tables = private_files.toml(file)
    if wrong := next((name for name in tables if not NAME.fullmatch(name)), None):
        raise ConfigError(f"{file}: {wrong!r} is not a user's name: letters, digits and ._@+- are allowed")
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
    if file.exists() and name in read(file):
        raise ConfigError(f"{file}: there is a user {name} already; delete the table to give a new token")
    token = secrets.token_urlsafe(32)
    table = f'["{name}"]\ntoken = "{hashed(token)}"\nrequests_per_minute = {requests_per_minute}\n\n'
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
