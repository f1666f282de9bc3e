"""The wire messages of the websocket, each defined once.

A connection speaks one of two subprotocols, ``lacuna.v1.json`` (text frames) and ``lacuna.v1.msgpack`` (binary
frames); one frame is one message, a map whose ``type`` names it. The client says ``hello`` first and the server
answers ``welcome``; after that the client may send any message at any time. Offsets are UTF-8 byte offsets. What a
client sends with an ``id`` is answered by messages with the same ``id``; ids are the client's own, unique in
its session.
"""

import json
from typing import Literal, TypeVar

import msgspec

from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import DecodeOptions, Diagnostic, InfillResult, Int64, Region, Snapshot, Snippet

VERSION = 1
JSON = f"lacuna.v{VERSION}.json"
MSGPACK = f"lacuna.v{VERSION}.msgpack"

ErrorCode = Literal[
    "bad_message",  # the frame is no message of this protocol
    "unauthorized",  # no token, or a wrong one, where one is needed
    "forbidden",  # the Origin or Host is not allowed
    "too_slow",  # the request did not come whole within its time
    "too_large",  # a message, document or request is over its limit
    "rate_limited",  # too many messages a second; try again after ``retry_after_ms``
    "overloaded",  # the queue, or the memory for all clients, is full; try again after ``retry_after_ms``
    "loading",  # the model is not loaded yet and the request did not want to wait
    "unknown_document",  # no document of that uri is open in this session
    "wrong_version",  # the document is open in another version
    "bad_request",  # the regions or options cannot be served
    "unknown_request",  # no request of that id is waiting or running
    "superseded",  # a newer request for the same document took its place
    "cancelled",  # the client cancelled it
    "model_failed",  # the model could not be loaded; the message says why
    "worker_crashed",  # the model process ended while it worked on this; it is started again
    "shutting_down",  # the service is ending
    "internal",  # a fault of the service; its log has the details
]


FeedbackKind = Literal["shown", "accepted", "partly_accepted", "rejected"]


class ServiceError(LacunaError):
    """A request the service refuses, with the code a client can act upon."""

    def __init__(self, code: ErrorCode, message: str, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_ms = retry_after_ms


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag=str.lower):
    """What every message has in common: its name as ``type``."""


# --- from the client


class Hello(Message, frozen=True):
    """Opens the conversation.

    ``client`` is the name of the program, for the log. ``session`` resumes an earlier one after a broken connection,
    whose documents stay open for a while and whose requests were cancelled; "" begins a new one.
    """

    client: str = ""
    session: str = ""


class Open(Message, frozen=True):
    """A document as the client has it.

    Later messages name it by ``uri``. Its ``text`` is that of ``version``, which the client counts as it likes.
    ``language`` is a name such as ``python``; where it is "" the extension of ``path`` decides. ``workspace`` is the
    folder whose files may be read as context ("": none); only those may name one who send the token of
    ``service.json`` (``Authorization: Bearer TOKEN``, or ``?token=``), others are refused with ``unauthorized``. A
    model that could not be loaded is tried again.
    """

    uri: str
    text: str
    version: Int64 = 0
    path: str = ""
    language: str = ""
    workspace: str = ""


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bytes from ``start`` to ``end`` become ``text``."""

    start: Int64
    end: Int64
    text: str


class Change(Message, frozen=True):
    """The document ``uri`` has changed.

    The ``edits`` take it from the version before to ``version``, each applied to what the one before left. A change
    that is refused closes the document, since it is no longer known what the client has: open it again.
    """

    uri: str
    version: Int64
    edits: tuple[Edit, ...]


class Close(Message, frozen=True):
    """The client closes the document ``uri``; requests for it are cancelled."""

    uri: str


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``regions`` to fill in the open document ``uri``, which has to be in ``version``."""

    uri: str
    version: Int64
    regions: tuple[Region, ...]


class Infill(Message, frozen=True):
    """Fill regions in one or several documents.

    The answers to it carry its ``id``. ``targets`` are the documents with their regions, ``options`` how to decode.
    ``candidates`` asks for so many different fills of each document, best first. ``snippets`` are parts of other files
    to read as context, ``diagnostics`` what is known to be wrong near the regions. ``supersede`` drops this session's
    older requests for the same documents. ``snapshots`` asks for the canvas after each step. ``wait`` false refuses
    with ``loading`` instead of waiting for the model.
    """

    id: str
    targets: tuple[Target, ...]
    options: DecodeOptions = DecodeOptions()
    candidates: Int64 = 1
    snippets: tuple[Snippet, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    supersede: bool = True
    snapshots: bool = False
    wait: bool = True


class Cancel(Message, frozen=True):
    """Stop the request ``id`` within one denoising step; it is answered with the error ``cancelled``."""

    id: str


class Feedback(Message, frozen=True):
    """What became of the fill that request ``id`` was answered with.

    ``kind`` says whether it was only shown or what the user did with it. ``accepted_bytes`` of candidate ``candidate``
    (counted from 0) were taken where it was accepted partly.
    """

    id: str
    kind: FeedbackKind
    candidate: Int64 = 0
    accepted_bytes: Int64 = 0


class GetStatus(Message, frozen=True, tag="get_status"):
    """Asks for ``status``."""


ClientMessage = Hello | Open | Change | Close | Infill | Cancel | Feedback | GetStatus

# --- from the server

ModelState = Literal["loading", "ready", "failed", "restarting"]


class OpenDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The document ``uri``, which the session has open in ``version``."""

    uri: str
    version: int


class Welcome(Message, frozen=True):
    """Answers ``hello``.

    ``session`` is the id to resume it by, ``server`` the name and version of the service, ``protocol`` the version of
    this protocol. ``resumed`` says whether the session asked for was still there, with the ``documents`` it has open.
    """

    session: str
    server: str
    protocol: int = VERSION
    resumed: bool = False
    documents: tuple[OpenDocument, ...] = ()


class Progress(Message, frozen=True):
    """Why there is no answer to request ``id`` yet.

    In the ``state`` queued ``place`` requests come first; in the state loading only ``fraction`` (0..1) of the model is
    loaded.
    """

    id: str
    state: Literal["queued", "loading", "running"]
    place: int = 0
    fraction: float = 0.0


class Step(Message, frozen=True):
    """The canvas of the document ``uri`` after one step of request ``id``, as ``snapshot``."""

    id: str
    uri: str
    snapshot: Snapshot


class Filled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``result`` for the document ``uri``, and the ``version`` it holds for."""

    uri: str
    version: int
    result: InfillResult


class Result(Message, frozen=True):
    """The end of request ``id``: ``results`` has one result for each of its targets, in their order."""

    id: str
    results: tuple[Filled, ...]


class Status(Message, frozen=True):
    """How the service is.

    ``model`` is the name of the model and ``state`` what it is in; ``fraction`` (0..1) is how much of it is loaded,
    ``detail`` says why it could not be, or why it is being loaded again. ``sessions`` and ``documents`` are open now;
    ``queued`` requests wait and ``running`` ones are worked on. ``uptime_s`` is in seconds.
    """

    model: str
    state: ModelState
    fraction: float = 1.0
    detail: str = ""
    sessions: int = 0
    documents: int = 0
    queued: int = 0
    running: int = 0
    uptime_s: float = 0.0


class Error(Message, frozen=True):
    """A refusal.

    ``code`` is stable and listed below, ``message`` one line for people. ``id`` names the request it is about and
    ``uri`` the document, each "" where it is about neither. After ``retry_after_ms`` milliseconds it may go well (0:
    asking again does not help).
    """

    code: ErrorCode
    message: str
    id: str = ""
    uri: str = ""
    retry_after_ms: int = 0


class Goodbye(Message, frozen=True):
    """The server closes the connection, and says why in ``reason``."""

    reason: str


ServerMessage = Welcome | Progress | Step | Result | Status | Error | Goodbye


def encode(message: ClientMessage | ServerMessage, subprotocol: str) -> str | bytes:
    """Return the frame of a message: text for the JSON subprotocol, bytes for MessagePack."""
    return msgspec.msgpack.encode(message) if subprotocol == MSGPACK else msgspec.json.encode(message).decode()


def decode_client(frame: str | bytes) -> ClientMessage:
    """Decode a client's message: text is JSON, bytes are MessagePack. Raises ServiceError ``bad_message``."""
    return _decode(frame, _CLIENT_JSON, _CLIENT_MSGPACK)


class Addressed(msgspec.Struct, frozen=True):
    """What can be told of a frame that is no message: its ``type``, ``id`` and ``uri``, "" where it has none."""

    type: str = ""
    id: str = ""
    uri: str = ""


def addressed(frame: str | bytes) -> Addressed:
    """Return type, id and uri of a frame that ``decode_client`` refused, so that the refusal can name them."""
    try:
        # The standard library accepts lone surrogates; JavaScript leaves them where half a character was deleted.
        found = msgspec.convert(json.loads(frame) if isinstance(frame, str) else _ANY.decode(frame), Addressed)
        f"{found.id}{found.uri}".encode()
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Addressed()
    return found


def decode_server(frame: str | bytes) -> ServerMessage:
    """Decode a server's message: text is JSON, bytes are MessagePack. Raises ServiceError ``bad_message``."""
    return _decode(frame, _SERVER_JSON, _SERVER_MSGPACK)


M = TypeVar("M")

_CLIENT_JSON: msgspec.json.Decoder[ClientMessage] = msgspec.json.Decoder(ClientMessage)
_CLIENT_MSGPACK: msgspec.msgpack.Decoder[ClientMessage] = msgspec.msgpack.Decoder(ClientMessage)
_ANY = msgspec.msgpack.Decoder()
_SERVER_JSON: msgspec.json.Decoder[ServerMessage] = msgspec.json.Decoder(ServerMessage)
_SERVER_MSGPACK: msgspec.msgpack.Decoder[ServerMessage] = msgspec.msgpack.Decoder(ServerMessage)


def _decode(frame: str | bytes, text: msgspec.json.Decoder[M], binary: msgspec.msgpack.Decoder[M]) -> M:
    try:
        return text.decode(frame) if isinstance(frame, str) else binary.decode(frame)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ServiceError("bad_message", f"not a message of {JSON}: {error}") from None
