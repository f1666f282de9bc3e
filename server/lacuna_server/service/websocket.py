"""The conversation on one websocket connection, with the messages that wait for its client."""

import asyncio
import importlib.metadata
import time
from collections import OrderedDict, deque
from typing import NamedTuple

import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect

from lacuna_model.core.params import InfillRequest, Snapshot
from lacuna_model.core.regions import texts_beside
from lacuna_server.service.guard import refused
from lacuna_server.service.service import Service, Session
from lacuna_server.wire import protocol
from lacuna_server.wire.documents import Documents, Share
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import (
    Addressed,
    Cancel,
    Change,
    ClientMessage,
    Close,
    Error,
    Feedback,
    GetStatus,
    Goodbye,
    Hello,
    Infill,
    Open,
    Progress,
    Result,
    ServerMessage,
    ServiceError,
    Step,
    Welcome,
)
from lacuna_server.worker.tickets import Ticket

log = structlog.get_logger(__name__)

SERVER = f"lacuna {importlib.metadata.version('lacuna-code')}"
OWN_CLIENTS_ONLY = (
    "files of a workspace are read for this user's own clients alone: send the token of service.json in the user's "
    "runtime folder ($XDG_RUNTIME_DIR/lacuna) as Authorization: Bearer TOKEN, or leave workspace out"
)
NORMAL, TRY_AGAIN_LATER = 1000, 1013
# More edits are applied in a thread, so that other clients do not wait.
MANY_EDITS = 500


class Outbox:
    """Outgoing messages of one connection, encoded for its subprotocol.

    Answers are never dropped. Where the client does not read them, or ``share`` has no room for more, ``full`` becomes
    true and the connection has to end.
    """

    def __init__(self, subprotocol: str, max_bytes: int, share: Share) -> None:
        self._share = share
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


class RateLimit:
    """A token bucket: admits ``per_second`` messages on average and as many in a burst."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left = float(per_second)
        self._then = time.monotonic()

    def check(self) -> None:
        """Count one message. Raises ServiceError ``rate_limited`` where there are too many."""
        now = time.monotonic()
        self._left = min(self._per_second, self._left + (now - self._then) * self._per_second)
        self._then = now
        if self._left < 1:
            wait_ms = max(1, round((1 - self._left) / self._per_second * 1e3))
            raise ServiceError("rate_limited", f"more than {self._per_second} messages a second", wait_ms)
        self._left -= 1


class Conversation:
    """Reads the client's messages in one task and writes the answers in another."""

    def __init__(self, websocket: WebSocket, service: Service) -> None:
        offered = websocket.scope["subprotocols"]
        self._subprotocol = next((name for name in offered if name in (protocol.JSON, protocol.MSGPACK)), None)
        self._websocket = websocket
        self._trusted: bool = websocket.state.trusted
        self._service = service
        self._config = service.config
        pool = service.sessions.pool
        unread, self._asked = pool.share(trusted=self._trusted), pool.share(trusted=self._trusted)
        self._outbox = Outbox(self._subprotocol or protocol.JSON, 4 * self._config.max_message_bytes, unread)
        self._rate = RateLimit(self._config.messages_per_s)
        self._fills: dict[str, _Running] = {}
        self._session: Session | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._said_goodbye = False

    async def run(self) -> None:
        """Talk until one side ends the connection; requests without an answer are then cancelled."""
        await self._websocket.accept(self._subprotocol)
        self._service.connections.add(self)
        tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            for fill in list(self._fills.values()):
                fill.ticket.cancel()
                fill.following.cancel()
            if self._session is not None:
                self._service.sessions.detach(self._session, self)
            self._outbox.close()
            self._asked.give_back()
            self._service.connections.discard(self)
            self._service.touch()
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect | TimeoutError):
                raise end

    def leave(self, reason: str, *, finish: bool) -> None:
        """Say goodbye and close. Before that, finish the running requests if ``finish``, else cancel them."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._say_goodbye(reason, finish))

    async def _say_goodbye(self, reason: str, finish: bool) -> None:
        for fill in list(self._fills.values()):
            if not finish:
                fill.ticket.cancel()
            await asyncio.wait([fill.following])
        self._said_goodbye = True
        self._send(Goodbye(reason))

    # --- writing

    def _send(self, message: ServerMessage) -> None:
        self._outbox.put(message)

    async def _write(self) -> None:
        """Send waiting messages; a client that reads nothing for ``send_timeout_s`` is disconnected."""
        while not (self._said_goodbye and self._outbox.empty):
            frame = await self._outbox.take()
            async with asyncio.timeout(self._config.send_timeout_s or None):
                await (
                    self._websocket.send_text(frame) if isinstance(frame, str) else self._websocket.send_bytes(frame)
                )
            await asyncio.sleep(0)  # lets asyncio notice a closed connection; it logs every write after that
        await self._websocket.close(NORMAL)

    # --- reading

    async def _read(self) -> None:
        async with asyncio.timeout(self._config.head_timeout_s or None):
            while self._session is None:
                await self._serve_next()
        while True:
            await self._serve_next()

    async def _serve_next(self) -> None:
        """Serve the next message, or refuse it if it is invalid. Disconnect a client that leaves answers unread."""
        if self._outbox.full:
            raise WebSocketDisconnect(TRY_AGAIN_LATER, "too many answers were left unread")
        event = await self._websocket.receive()
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(event.get("code", NORMAL))
        frame = event["text"] if event.get("text") is not None else event["bytes"]
        async with self._service.turns.turn(trusted=self._trusted):
            try:
                message = protocol.decode_client(frame)
            except ServiceError as error:
                return self._refuse_unread(error, protocol.addressed(frame))
            if self._session is None:
                return self._greet(message)
            await self._handle(message)

    def _refuse_unread(self, error: ServiceError, about: Addressed) -> None:
        if about.type in ("change", "open") and self._session is not None:  # the service has missed this text
            self._documents.close(about.uri)
        self._refuse(error, about)

    def _greet(self, message: ClientMessage) -> None:
        if not isinstance(message, Hello):
            return self._refuse(ServiceError("bad_message", "the first message must be hello"), message)
        try:
            session, resumed = self._service.sessions.attach(message.session, self, trusted=self._trusted)
        except ServiceError as error:
            return self._refuse(error)
        self._session = session
        documents, workspaces = session.documents.listed(), self._trusted and self._service.reads_workspaces
        self._send(Welcome(session.id, SERVER, resumed=resumed, documents=documents, workspaces=workspaces))
        log.info("session", client=message.client[:80], resumed=resumed)

    async def _handle(self, message: ClientMessage) -> None:
        try:
            self._rate.check()
            if isinstance(message, Change) and len(message.edits) > MANY_EDITS:
                message = await asyncio.to_thread(self._documents.folded, message)
            if self._session is not None and self._session.connection is self:  # else it goes on in another one
                self._serve(message)
        except ServiceError as error:
            if isinstance(message, Change | Open):  # after a missed change the text no longer agrees with the client's
                self._documents.close(message.uri)
            self._refuse(error, message)

    def _serve(self, message: ClientMessage) -> None:
        match message:
            case Open():
                self._check_workspace(message.workspace)
                self._documents.open(message)
                self._service.retry()
            case Change():
                self._documents.change(message)
            case Close(uri=uri):
                self._documents.close(uri)
                self._stop_fills(uri, ServiceError("cancelled", "the document was closed"))
            case Infill():
                self._infill(message)
            case Cancel(id=id):
                if id not in self._fills:
                    raise ServiceError("unknown_request", "no request with this id is waiting or running")
                self._fills.pop(id).ticket.cancel()
            case Feedback():
                self._service.count_feedback(message)
            case GetStatus():
                self._send(self._service.status())
            case Hello():
                raise ServiceError("bad_message", "hello was already sent")

    @property
    def _documents(self) -> Documents:
        assert self._session is not None
        return self._session.documents

    # --- filling

    def _infill(self, message: Infill) -> None:
        assert self._session is not None
        if message.id in self._fills:
            raise ServiceError("bad_request", "a request with this id is already running")
        if len(message.regions) > self._config.max_regions:
            raise ServiceError("too_large", f"{len(message.regions)} regions, {self._config.max_regions} are allowed")
        request = self._request(message)
        if message.supersede:
            why = ServiceError("superseded", "a newer request for the document replaced this one")
            self._stop_fills(message.uri, why)
        num_bytes = _num_bytes(request)
        self._asked.take(num_bytes)
        try:
            ticket = self._service.scheduler.submit(
                Submission(
                    request,
                    session=self._session.id,
                    document=message.uri,
                    snapshots=message.snapshots,
                    wait=message.wait,
                    preferred=self._trusted,
                )
            )
        except ServiceError:
            self._asked.take(-num_bytes)
            raise
        fill = _Running(ticket, asyncio.create_task(self._follow(message, ticket)))
        self._fills[message.id] = fill
        fill.following.add_done_callback(lambda done: self._forget(message.id, fill, num_bytes))

    async def _follow(self, message: Infill, ticket: Ticket) -> None:
        """Send what becomes of a request, up to its one answer."""
        try:
            async for event in ticket.events():
                if isinstance(event, Snapshot):
                    self._send(Step(message.id, event))
                else:
                    self._send(Progress(message.id, event.state, event.place, event.fraction))
            self._send(Result(message.id, await ticket.result()))
        except ServiceError as error:
            self._refuse(error, message)

    def _forget(self, id: str, fill: "_Running", num_bytes: int) -> None:
        self._asked.take(-min(num_bytes, self._asked.held))
        if self._fills.get(id) is fill:
            del self._fills[id]

    def _stop_fills(self, uri: str, why: ServiceError) -> None:
        for id, fill in list(self._fills.items()):
            if fill.ticket.submission.document == uri:
                del self._fills[id]
                fill.ticket.cancel(why)

    def _request(self, message: Infill) -> InfillRequest:
        """Return the engine's request. Raises ServiceError where a version or an edit is wrong."""
        document = self._documents.get(message.uri, message.version)
        self._check_workspace(document.workspace)  # the session may have been resumed by another client
        return InfillRequest(
            text=self._documents.edited(document, message.edits).decode(),
            regions=message.regions,
            task=message.task,
            path=document.path or document.uri,
            language=document.language,
            snippets=message.snippets,
            options=message.options,
            workspace=document.workspace if self._service.reads_workspaces else "",
            diagnostics=message.diagnostics,
            signatures=message.signatures,
        )

    def _check_workspace(self, workspace: str) -> None:
        """Refuse a workspace to untrusted clients: any user of this machine can connect and name any folder."""
        if workspace and not self._trusted:
            raise ServiceError("unauthorized", OWN_CLIENTS_ONLY)

    def _refuse(self, error: ServiceError, message: ClientMessage | Addressed | None = None) -> None:
        refused(error, getattr(message, "type", "") or type(message).__name__.lower())
        id, uri = getattr(message, "id", ""), getattr(message, "uri", "")
        self._send(Error(error.code, str(error), id, uri, error.retry_after_ms))


class _Running(NamedTuple):
    """A request that has no answer yet, and the task that sends what becomes of it."""

    ticket: Ticket
    following: asyncio.Task[None]


def _num_bytes(request: InfillRequest) -> int:
    """Return the approximate memory of a request."""
    beside = (*texts_beside(request), *(one.message for one in request.diagnostics))
    return len(request.text) + sum(map(len, beside))
