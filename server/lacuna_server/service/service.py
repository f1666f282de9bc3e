"""The state that all routes share: configuration, model, sessions with their documents, and feedback counts."""

import asyncio
import secrets
import time
from collections import Counter
from typing import Protocol

import msgspec
import structlog

from lacuna_server.service.own_first import Turns
from lacuna_server.wire.config import ServerConfig, is_loopback
from lacuna_server.wire.documents import RETRY_MS, Documents, Pool, Share
from lacuna_server.wire.protocol import Feedback, ServiceError, Status
from lacuna_server.worker.process import Model, OwnModel

# One of so many sessions is for clients that send the token.
RESERVED = 8


class SessionConnection(Protocol):
    """The connection of a session."""

    def leave(self, reason: str, *, finish: bool) -> None:
        """Say goodbye and close. Before that, finish the running requests if ``finish``, else cancel them."""
        ...


class Session:
    """One client's documents. ``id`` is secret, because any client that has it may resume the session."""

    def __init__(self, config: ServerConfig, share: Share, *, trusted: bool) -> None:
        self.trusted = trusted
        self.id = secrets.token_urlsafe(16)
        self.documents = Documents(max_documents=config.max_documents, max_bytes=config.max_document_bytes, share=share)
        self.connection: SessionConnection | None = None
        self.expiry: asyncio.TimerHandle | None = None


class Sessions:
    """All sessions, including those that have no connection at the moment."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._sessions: dict[str, Session] = {}
        # For documents, requests and answers; the other half of the bytes is for incomplete messages.
        self.pool = Pool(config.max_held_bytes // 2)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def attached(self) -> tuple[Session, ...]:
        """The sessions that have a connection."""
        return tuple(session for session in self._sessions.values() if session.connection is not None)

    @property
    def num_documents(self) -> int:
        """The number of documents open in all sessions."""
        return sum(len(session.documents) for session in self._sessions.values())

    def attach(self, id: str, connection: SessionConnection, *, trusted: bool = False) -> tuple[Session, bool]:
        """Attach a connection to the session ``id`` and return it and True; for an unknown id a new session and False.

        An older connection of the session is closed. ``trusted`` tells whether the client sent the token. Raises
        ServiceError ``overloaded`` where there are too many sessions.
        """
        session = self._sessions.get(id)
        resumed = session is not None
        if session is None:
            self._make_room(trusted=trusted)
            session = Session(self._config, self.pool.share(trusted=trusted), trusted=trusted)
            self._sessions[session.id] = session
        if session.expiry is not None:
            session.expiry.cancel()
            session.expiry = None
        if session.connection is not None:
            session.connection.leave("the session goes on in another connection", finish=False)
        session.connection = connection
        return session, resumed

    def detach(self, session: Session, connection: SessionConnection) -> None:
        """Detach an ended connection; the session can be resumed for ``resume_grace_s`` seconds."""
        if session.connection is connection:
            session.connection = None
            loop = asyncio.get_running_loop()
            session.expiry = loop.call_later(self._config.resume_grace_s, self._forget, session)

    def _make_room(self, *, trusted: bool) -> None:
        """If there are too many sessions, drop the one that has been without a connection for longest.

        An eighth of the room is for clients that send the token. The others drop and count their own sessions only.
        """
        most = self._config.max_sessions
        counted = [session for session in self._sessions.values() if trusted or not session.trusted]
        if len(self._sessions) < most and (trusted or len(counted) < most - most // RESERVED):
            return
        waiting = [session for session in counted if session.expiry is not None]
        if not waiting:
            raise ServiceError("overloaded", f"{len(counted)} sessions are open, no more are allowed", RETRY_MS)
        self._forget(
            min(waiting, key=lambda one: (one.trusted, one.expiry.when() if one.expiry else 0.0)),
        )

    def _forget(self, session: Session) -> None:
        if session.expiry is not None:
            session.expiry.cancel()
        self._sessions.pop(session.id, None)
        session.documents.close_all()


log = structlog.get_logger(__name__)

# The time that connections have to read their last messages.
FAREWELL_S = 2.0


class Service:
    """The state of one server process, passed to every route.

    ``feedback`` counts feedback by kind; ``accepted_bytes`` sums the bytes that users took of partly accepted fills.
    """

    def __init__(self, config: ServerConfig, model: Model | None = None) -> None:
        """By default the model is one of this machine."""
        self.config = config
        self.model = OwnModel(config) if model is None else model
        self.scheduler = self.model.scheduler
        self.sessions = Sessions(config)
        self.turns = Turns()
        self.connections: set[SessionConnection] = set()
        self.feedback: Counter[str] = Counter()
        self.accepted_bytes = 0
        self._started = self._active = time.monotonic()

    def start(self) -> None:
        """Begin to load the model."""
        self.model.start()

    def retry(self) -> None:
        """Try again to load a model that could not be loaded: the cause may have been removed since."""
        self.model.retry()

    async def close(self) -> None:
        """Let running requests finish within ``shutdown_grace_s``, refuse the others, say goodbye, stop the model."""
        await self.model.finish(self.config.shutdown_grace_s)
        deadline = time.monotonic() + FAREWELL_S
        for connection in list(self.connections):
            connection.leave("the service is shutting down", finish=True)
        while self.connections and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        await self.model.stop()

    def status(self) -> Status:
        """Return the present state of the service."""
        return msgspec.structs.replace(
            self.scheduler.status(),
            sessions=len(self.sessions.attached),
            documents=self.sessions.num_documents,
            uptime_s=time.monotonic() - self._started,
        )

    @property
    def reads_workspaces(self) -> bool:
        """Whether files of the clients' folders are read, which are on another machine where clients of others come."""
        return self.model.reads_workspaces and is_loopback(self.config.host)

    def touch(self) -> None:
        """Note that the service is in use now."""
        self._active = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds without a websocket connection, an HTTP request or work."""
        status = self.scheduler.status()
        if self.connections or status.queued or status.running:
            self.touch()
        return time.monotonic() - self._active

    def count_feedback(self, feedback: Feedback) -> None:
        """Count what the user did with a fill."""
        self.feedback[feedback.kind] += 1
        self.accepted_bytes += feedback.accepted_bytes
        log.info("feedback", kind=feedback.kind, candidate=feedback.candidate, accepted_bytes=feedback.accepted_bytes)
