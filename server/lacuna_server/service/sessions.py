"""The sessions of clients, and the messages that wait for each."""

import asyncio
import secrets
from collections import OrderedDict, deque
from typing import Protocol

from lacuna_server.wire import protocol
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.documents import RETRY_MS, UNBOUNDED, Documents, Pool, Share
from lacuna_server.wire.protocol import Progress, ServerMessage, ServiceError, Step


class Outbox:
    """Outgoing messages of one connection, encoded for its subprotocol.

    Answers are never dropped. Where the client does not read them, or ``share`` has no room for more, ``full`` becomes
    true and the connection has to end.
    """

    def __init__(self, subprotocol: str, max_bytes: int, share: Share | None = None) -> None:
        self._share = share or UNBOUNDED.share()
        self._has_room = True
        self._being_sent = 0
        self._subprotocol = subprotocol
        self._max_bytes = max_bytes
        self._answers: deque[str | bytes] = deque()
        self._num_bytes = 0
        self._latest: OrderedDict[tuple[type, str], Progress | Step] = OrderedDict()
        self._changed = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether more than ``max_bytes`` bytes of answers wait, or more than the share has room for."""
        return self._num_bytes > self._max_bytes or not self._has_room

    @property
    def empty(self) -> bool:
        """Whether no message waits."""
        return not self._answers and not self._latest

    def put(self, message: ServerMessage) -> None:
        """Add a message. A step, or progress, replaces an unsent one of its request."""
        if isinstance(message, Progress | Step):
            self._latest[type(message), message.id] = message
        else:
            self._flush(getattr(message, "id", ""))
            self._append(message)
        self._changed.set()

    async def take(self) -> str | bytes:
        """Wait for the next frame and return it, answers first. The caller has sent the previous frame by then."""
        self._share.take(-self._being_sent)
        self._being_sent = 0
        while self.empty:
            self._changed.clear()
            await self._changed.wait()
        if self._answers:
            frame = self._answers.popleft()
            self._num_bytes -= len(frame)
            if self._has_room:
                self._being_sent = len(frame)
            return frame
        return self._encode(self._latest.popitem(last=False)[1])

    def close(self) -> None:
        """Give the share back, and take nothing of it from now on."""
        self._has_room = False
        self._being_sent = 0
        self._share.give_back()

    def _flush(self, id: str) -> None:
        """Put a request's last steps before its answer, and drop its progress."""
        for kind in [kind for kind in self._latest if id and kind[1] == id]:
            message = self._latest.pop(kind)
            if isinstance(message, Step):
                self._append(message)

    def _append(self, message: ServerMessage) -> None:
        frame = self._encode(message)
        self._answers.append(frame)
        self._num_bytes += len(frame)
        if self._has_room:
            try:
                self._share.take(len(frame))
            except ServiceError:
                self.close()

    def _encode(self, message: ServerMessage) -> str | bytes:
        return protocol.encode(message, self._subprotocol)


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
