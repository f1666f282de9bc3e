"""The conversation on one websocket connection, with the messages that wait for its client."""

import asyncio
import importlib.metadata
import secrets

import structlog
from msgspec.structs import replace
from starlette.websockets import WebSocket, WebSocketDisconnect

from lacuna_model.core.errors import traced
from lacuna_model.core.params import InfillRequest, Snapshot
from lacuna_model.core.regions import texts_beside
from lacuna_server.service.guard import refused
from lacuna_server.service.service import Service
from lacuna_server.wire import protocol
from lacuna_server.wire.documents import Documents
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import Addressed, ClientMessage, Infill, ServerMessage, ServiceError
from lacuna_server.worker.scheduler import Ticket

log = structlog.get_logger(__name__)

SERVER = f"lacuna {importlib.metadata.version('lacuna-code')}"
OWN_CLIENTS_ONLY = (
    "files of a workspace are read for this user's own clients alone: send the token of service.json in the user's "
    "runtime folder ($XDG_RUNTIME_DIR/lacuna) as Authorization: Bearer TOKEN, or leave workspace out"
)
NORMAL, TRY_AGAIN_LATER = 1000, 1013
MAX_SECRET = 100


class Conversation:
    """Reads the client's messages in one task and writes the answers in another.

    No answer is dropped: where the client does not read them, or the pool has no room for more, the connection ends.
    """

    def __init__(self, websocket: WebSocket, service: Service) -> None:
        offered = websocket.scope["subprotocols"]
        self._subprotocol = next((name for name in offered if name in (protocol.JSON, protocol.MSGPACK)), None)
        self._websocket = websocket
        self.trusted: bool = websocket.state.trusted
        self.greeted = False
        self._service = service
        self._config = service.config
        kept, self._unread, self._asked = (service.pool.share(trusted=self.trusted) for _ in range(3))
        self.documents = Documents(self._config, kept)
        self._frames: asyncio.Queue[str | bytes] = asyncio.Queue()
        self._overflows = False
        self._fills: dict[str, Ticket] = {}  # those that have no answer yet
        self._tasks = asyncio.TaskGroup()
        self._following = set[asyncio.Task[None]]()  # those that send the answers
        self._session = ""
        self._leaving: asyncio.Task[None] | None = None
        self._said_goodbye = False

    async def run(self) -> None:
        """Talk until one side ends the connection; requests without an answer are then cancelled."""
        await self._websocket.accept(self._subprotocol)
        self._service.sessions.add(self)
        try:
            async with self._tasks:
                self._tasks.create_task(self._read())
                self._tasks.create_task(self._write())
        except* (WebSocketDisconnect, TimeoutError):
            pass
        finally:
            for ticket in self._fills.values():  # whose tasks had not begun
                ticket.cancel()
            if self._leaving is not None:
                self._leaving.cancel()
            self.documents.close_all()
            self._unread.give_back()
            self._asked.give_back()
            self._service.sessions.discard(self)

    def leave(self, reason: str) -> None:
        """Say goodbye and close, once the running requests have ended."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._say_goodbye(reason))

    async def _say_goodbye(self, reason: str) -> None:
        if self._following:
            await asyncio.wait(self._following)
        self._said_goodbye = True
        self._send(protocol.Goodbye(reason))

    # --- writing

    def _send(self, message: ServerMessage) -> None:
        frame = protocol.encode(message, self._subprotocol or protocol.JSON)
        self._frames.put_nowait(frame)
        try:
            self._unread.take(len(frame))
        except ServiceError:
            self._overflows = True

    async def _write(self) -> None:
        """Send waiting messages; a client that reads nothing for ``send_timeout_s`` is disconnected."""
        while not (self._said_goodbye and self._frames.empty()):
            frame = await self._frames.get()
            async with asyncio.timeout(self._config.send_timeout_s or None):
                await (
                    self._websocket.send_text(frame) if isinstance(frame, str) else self._websocket.send_bytes(frame)
                )
            self._frames.task_done()
            self._unread.take(-min(len(frame), self._unread.held))
            await asyncio.sleep(0)  # lets asyncio notice a closed connection; it logs every write after that
        await self._websocket.close(NORMAL)
        raise WebSocketDisconnect(NORMAL)

    # --- reading

    async def _read(self) -> None:
        async with asyncio.timeout(self._config.head_timeout_s or None):
            while not self.greeted:
                await self._serve_next()
        while True:
            await self._serve_next()

    async def _serve_next(self) -> None:
        """Serve the next message, or refuse it if it is invalid. Disconnect a client that leaves answers unread."""
        if self._overflows or self._unread.held > 4 * self._config.max_message_bytes:
            raise WebSocketDisconnect(TRY_AGAIN_LATER, "too many answers were left unread")
        event = await self._websocket.receive()
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(event.get("code", NORMAL))
        frame = event["text"] if event.get("text") is not None else event["bytes"]
        async with self._service.turns.turn(trusted=self.trusted):
            try:
                message = protocol.decode_client(frame)
            except ServiceError as error:
                return self._refuse(error, protocol.addressed(frame))
            if not self.greeted:
                return self._greet(message)
            try:
                self._serve(message)
            except ServiceError as error:
                self._refuse(error, message)

    def _greet(self, message: ClientMessage) -> None:
        if not isinstance(message, protocol.Hello):
            return self._refuse(ServiceError("bad_message", "the first message must be hello"), message)
        try:
            self._service.check_room(trusted=self.trusted)
        except ServiceError as error:
            return self._refuse(error)
        self.greeted = True
        self._session = f"{self.trusted} {message.session[:MAX_SECRET] or secrets.token_urlsafe(16)}"
        self._send(protocol.Welcome(SERVER, workspaces=self.trusted and self._service.reads_workspaces))
        log.info("session", client=message.client[:80])

    def _serve(self, message: ClientMessage) -> None:
        match message:
            case protocol.Open():
                # Any user of this machine can connect and name any folder.
                if message.workspace and not self.trusted:
                    raise ServiceError("unauthorized", OWN_CLIENTS_ONLY)
                self.documents.open(message)
                self._service.model.retry()
            case protocol.Change():
                self.documents.change(message)
            case protocol.Close(uri=uri):
                self.documents.close(uri)
                self._stop_fills(uri, ServiceError("cancelled", "the document was closed"))
            case Infill():
                self._infill(message)
            case protocol.Cancel(id=id):
                if id not in self._fills:
                    raise ServiceError("unknown_request", "no request with this id is waiting or running")
                self._fills.pop(id).cancel()
            case protocol.Feedback(kind=kind, candidate=candidate, accepted_bytes=accepted_bytes):
                self._service.feedback[kind] += 1
                log.info("feedback", kind=kind, candidate=candidate, accepted_bytes=accepted_bytes)
            case protocol.GetStatus():
                self._send(self._service.status())
            case protocol.Hello():
                raise ServiceError("bad_message", "hello was already sent")

    # --- filling

    def _infill(self, message: Infill) -> None:
        if message.id in self._fills:
            raise ServiceError("bad_request", "a request with this id is already running")
        if len(message.regions) > self._config.max_regions:
            raise ServiceError("too_large", f"{len(message.regions)} regions, {self._config.max_regions} are allowed")
        request = self._request(message)
        if message.supersede:
            why = ServiceError("superseded", "a newer request for the document replaced this one")
            self._stop_fills(message.uri, why)
        beside = (*texts_beside(request), *(one.message for one in request.diagnostics))
        num_bytes = len(request.text) + sum(map(len, beside))  # about what it takes of memory
        self._asked.take(num_bytes)
        try:
            ticket = self._service.model.submit(
                Submission(
                    request,
                    session=self._session,
                    document=message.uri,
                    snapshots=message.snapshots,
                    wait=message.wait,
                    preferred=self.trusted,
                )
            )
        except ServiceError:
            self._asked.take(-num_bytes)
            raise
        self._fills[message.id] = ticket
        following = self._tasks.create_task(self._follow(message, ticket, num_bytes))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def _follow(self, message: Infill, ticket: Ticket, num_bytes: int) -> None:
        """Send what becomes of a request, up to its one answer."""
        try:
            async for event in ticket.events():
                await self._frames.join()  # a slow reader gets the latest event of each kind
                if isinstance(event, Snapshot):
                    self._send(protocol.Step(message.id, event))
                else:
                    self._send(replace(event, id=message.id))
            self._send(protocol.Result(message.id, await ticket.result()))
        except ServiceError as error:
            self._refuse(error, message)
        except Exception as error:  # that of one request must not end the others
            log.error("unanswered", where=traced(error))
            self._refuse(ServiceError("internal", "the service failed; its log has the details"), message)
        finally:
            ticket.cancel()  # where the conversation ends before it
            self._asked.take(-min(num_bytes, self._asked.held))
            if self._fills.get(message.id) is ticket:
                del self._fills[message.id]

    def _stop_fills(self, uri: str, why: ServiceError) -> None:
        for id, ticket in list(self._fills.items()):
            if ticket.submission.document == uri:
                del self._fills[id]
                ticket.cancel(why)

    def _request(self, message: Infill) -> InfillRequest:
        """Return the engine's request. Raises ServiceError where a version or an edit is wrong."""
        document = self.documents.get(message.uri, message.version)
        return InfillRequest(
            text=self.documents.edited(document, message.edits).decode(),
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

    def _refuse(self, error: ServiceError, message: ClientMessage | Addressed | None = None) -> None:
        kind = getattr(message, "type", "") or type(message).__name__.lower()
        id, uri = getattr(message, "id", ""), getattr(message, "uri", "")
        refused(error, kind)
        if kind in ("change", "open"):  # the service has missed this text
            self.documents.close(uri)
        self._send(protocol.Error(error.code, str(error), id, uri, error.retry_after_ms))
