"""Sessions: what a client has open, kept for a while when its connection breaks."""

import asyncio
import secrets
from typing import Protocol

from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.documents import Documents
from lacuna_server.wire.protocol import ServiceError
from lacuna_server.wire.shares import Pool, Share


class Connection(Protocol):
    """The connection a session is attached to."""

    def leave(self, reason: str, *, finish: bool) -> None:
        """Say goodbye and close; before that, answer or cancel what is under way."""
        ...


class Session:
    """One client's documents; ``id`` is secret, because whoever has it may resume the session."""

    def __init__(self, config: ServerConfig, share: Share) -> None:
        self.id = secrets.token_urlsafe(16)
        self.documents = Documents(max_documents=config.max_documents, max_bytes=config.max_document_bytes, share=share)
        self.connection: Connection | None = None
        self.expiry: asyncio.TimerHandle | None = None


class Sessions:
    """All sessions, those without a connection at the moment included."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._sessions: dict[str, Session] = {}
        # For documents, requests and answers; the other half is for messages that are not whole yet.
        self.pool = Pool(config.max_held_bytes // 2)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def attached(self) -> tuple[Session, ...]:
        """Sessions with a connection."""
        return tuple(session for session in self._sessions.values() if session.connection is not None)

    @property
    def num_documents(self) -> int:
        """Documents open in all sessions."""
        return sum(len(session.documents) for session in self._sessions.values())

    def attach(self, id: str, connection: Connection, *, trusted: bool = False) -> tuple[Session, bool]:
        """The session of that id and True, or a new one and False; an older connection of it is closed.

        One that is ``trusted`` has sent the token. Raises ServiceError ``overloaded`` where there are too many.
        """
        session = self._sessions.get(id)
        resumed = session is not None
        if session is None:
            self._make_room()
            session = Session(self._config, self.pool.share(trusted=trusted))
            self._sessions[session.id] = session
        if session.expiry is not None:
            session.expiry.cancel()
            session.expiry = None
        if session.connection is not None:
            session.connection.leave("the session goes on in another connection", finish=False)
        session.connection = connection
        return session, resumed

    def detach(self, session: Session, connection: Connection) -> None:
        """The connection has ended; the session may be resumed for ``resume_grace_s``."""
        if session.connection is connection:
            session.connection = None
            loop = asyncio.get_running_loop()
            session.expiry = loop.call_later(self._config.resume_grace_s, self._forget, session)

    def _make_room(self) -> None:
        """Where there are too many, forget the session that has been without a connection for longest."""
        if len(self._sessions) < self._config.max_sessions:
            return
        waiting = [session for session in self._sessions.values() if session.expiry is not None]
        if not waiting:
            raise ServiceError("overloaded", f"{len(self._sessions)} sessions are open, no more are allowed")
        self._forget(min(waiting, key=lambda session: session.expiry.when() if session.expiry else 0.0))

    def _forget(self, session: Session) -> None:
        if session.expiry is not None:
            session.expiry.cancel()
        self._sessions.pop(session.id, None)
        session.documents.close_all()
