"""The messages that clients and the service exchange over the websocket.

A connection speaks one of two subprotocols, ``lacuna.v1.json`` (text frames) and ``lacuna.v1.msgpack`` (binary
frames). Each frame holds one message: a map whose ``type`` names the message. The client sends ``hello`` first, and
the server answers with ``welcome``. After that, the client may send any message at any time. All offsets are UTF-8
byte offsets. The client chooses the ``id`` of a request, which must be unique in its connection; every answer to the
request has the same ``id``.
"""

import re
from typing import Any, Literal, TypeVar

import msgspec

from lacuna_model.core.errors import LacunaError
from lacuna_model.core.params import (
    DecodeOptions,
    Diagnostic,
    FillGaps,
    InfillResult,
    Int64,
    Region,
    Snapshot,
    Snippet,
    Task,
)
from lacuna_model.text.lines import well_formed

VERSION = 1
JSON = f"lacuna.v{VERSION}.json"
MSGPACK = f"lacuna.v{VERSION}.msgpack"

ErrorCode = Literal[
    "bad_message",  # the frame does not parse as a message of this protocol
    "unauthorized",  # the service needs a token, and the given one is missing or wrong
    "forbidden",  # the ``Origin`` or ``Host`` header is not allowed
    "too_slow",  # the request was not received completely before the time limit
    "too_large",  # a message, document or request exceeds its size limit
    "rate_limited",  # the user of a cluster requests more than the quota; retry after ``retry_after_ms``
    "overloaded",  # the queue, or the memory for all clients, is full; retry after ``retry_after_ms``
    "loading",  # the model is not loaded yet, and the request has ``wait`` set to false
    "unknown_document",  # the session has no open document with this ``uri``
    "wrong_version",  # the open document has another version
    "bad_request",  # a value of the message, such as a region or an option, is invalid
    "unknown_request",  # no request with this ``id`` is waiting or running
    "superseded",  # a newer request for the same document replaced this one
    "cancelled",  # the client cancelled the request
    "model_failed",  # the model could not be loaded; ``message`` has the reason
    "worker_crashed",  # the model process ended during the request; the service starts it again
    "shutting_down",  # the service is shutting down
    "internal",  # an error inside the service; its log has the details
]


FeedbackKind = Literal["shown", "accepted", "partly_accepted", "rejected"]


class ServiceError(LacunaError):
    """The service refuses a request; ``code`` tells the client how to react."""

    def __init__(self, code: ErrorCode, message: str, retry_after_ms: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_ms = retry_after_ms


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag=str.lower):
    """The base of all messages; ``type`` has the name of the message."""


# --- from the client


class Hello(Message, frozen=True):
    """Opens the connection.

    ``client`` is the name of the client program, for the log. ``session`` is a secret that the client draws: what
    was read for its documents stays in memory for a client that connects again with the same one, and opens them again.
    """

    client: str = ""
    session: str = ""


class Open(Message, frozen=True):
    """Opens a document.

    Later messages name the document by its ``uri``. ``text`` is the whole text in ``version``; the client chooses the
    version numbers. ``language`` is a name such as ``python``; if it is "", the extension of ``path`` decides.
    ``workspace`` is the folder whose files the service may read as context ("": none). Only a client that sends the
    token of ``service.json`` (``Authorization: Bearer TOKEN``, or ``?token=``) may name a workspace; without the token
    the message is refused with ``unauthorized``. If the model could not be loaded, this message makes the service try
    again. A refused message closes the document, if it was open.
    """

    uri: str
    text: str
    version: Int64 = 0
    path: str = ""
    language: str = ""
    workspace: str = ""


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replaces the bytes from ``start`` up to, but not including, ``end`` with ``text``."""

    start: Int64
    end: Int64
    text: str


class Change(Message, frozen=True):
    """Changes the open document ``uri``.

    The ``edits``, at most 1,000, turn the previous version into ``version``. They are applied in order, and the offsets
    of each edit refer to the text after the edits before it. If the service refuses a change, it closes the document,
    because it no longer knows the client's text. The client then has to open the document again.
    """

    uri: str
    version: Int64
    edits: tuple[Edit, ...]


class Close(Message, frozen=True):
    """Closes the document ``uri`` and cancels the requests for it."""

    uri: str


class Infill(Message, frozen=True):
    """Fills the ``regions`` of the open document ``uri``, which must have this ``version``.

    The ``edits`` change its text for this request alone, in the same way as those of ``change``. The regions refer to
    the text after them. ``task`` says what to do with them, and ``options`` control the decoding. ``snippets`` are
    parts of other files that the model reads as context. With the texts of the regions and of the task, they may be
    5,000 and have 400,000 characters. ``diagnostics`` are problems that a compiler or linter reports near the regions,
    ``signatures`` what the editor's own language servers say of names there, in their own words.
    If ``supersede`` is true, this session's older requests for the same document end with the error ``superseded``. If
    ``snapshots`` is true, the service sends the fills after each step. If ``wait`` is false and the model is not loaded
    yet, the request is refused with ``loading``; otherwise it waits. All answers have the same ``id``.
    """

    id: str
    uri: str
    version: Int64
    regions: tuple[Region, ...]
    edits: tuple[Edit, ...] = ()
    task: Task = FillGaps()
    options: DecodeOptions = DecodeOptions()
    snippets: tuple[Snippet, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    signatures: tuple[Snippet, ...] = ()
    supersede: bool = True
    snapshots: bool = False
    wait: bool = True


class Cancel(Message, frozen=True):
    """Stops the request ``id`` within one denoising step; the request ends with the error ``cancelled``."""

    id: str


class Feedback(Message, frozen=True):
    """Reports what the user did with the fill of request ``id``.

    ``kind`` says whether the fill was shown, accepted, accepted in part, or rejected. ``candidate`` is the index of the
    fill among the candidates, counted from 0. For a fill accepted in part, ``accepted_bytes`` is the length of that
    part.
    """

    id: str
    kind: FeedbackKind
    candidate: Int64 = 0
    accepted_bytes: Int64 = 0


class GetStatus(Message, frozen=True, tag="get_status"):
    """Requests a ``status`` message."""


ClientMessage = Hello | Open | Change | Close | Infill | Cancel | Feedback | GetStatus

# --- from the server

ModelState = Literal["loading", "ready", "failed", "restarting"]


class Welcome(Message, frozen=True):
    """Answers ``hello``.

    ``server`` is the name and version of the service, and ``protocol`` the version of this protocol. If ``workspaces``
    is false, the service reads no file of this client's folders: what other files say can only come as ``snippets`` of
    ``infill``.
    """

    server: str
    protocol: int = VERSION
    workspaces: bool = True


class Progress(Message, frozen=True):
    """Says why request ``id`` has no answer yet.

    In the ``state`` ``loading``, ``fraction`` (0..1) of the model is loaded.
    """

    id: str
    state: Literal["queued", "loading", "running"]
    fraction: float = 0.0


class Step(Message, frozen=True):
    """Shows the fills after one step of request ``id``, as a ``snapshot``."""

    id: str
    snapshot: Snapshot


class Result(Message, frozen=True):
    """Ends request ``id`` with its ``result``."""

    id: str
    result: InfillResult


class Status(Message, frozen=True):
    """Describes the state of the service.

    ``model`` is the name of the model, and ``state`` its state. ``fraction`` (0..1) is the part of the model that is
    loaded. ``detail`` says why the model could not be loaded, or why it is being loaded again. ``sessions`` and
    ``documents`` count what is open now, ``queued`` and ``running`` the requests that wait and those in progress.
    ``uptime_s`` is the time since the start in seconds. ``follows_edits`` says that the model was made for next edits.
    Context and fills may have ``positions`` tokens together (0: not known). The process of the model was started again
    ``restarts`` times, the last time because of ``restarted``.
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
    follows_edits: bool = False
    positions: int = 0
    restarts: int = 0
    restarted: str = ""


class Error(Message, frozen=True):
    """Refuses a message, or ends a request with an error.

    ``code`` is one of the error codes below; their names do not change. ``message`` is one line for people. ``id`` is
    the request and ``uri`` the document that the error is about, or "" if it is about none. A retry may succeed after
    ``retry_after_ms`` milliseconds (0: a retry does not help).
    """

    code: ErrorCode
    message: str
    id: str = ""
    uri: str = ""
    retry_after_ms: int = 0


class Goodbye(Message, frozen=True):
    """Announces that the server closes the connection; ``reason`` says why."""

    reason: str


ServerMessage = Welcome | Progress | Step | Result | Status | Error | Goodbye


def encode(message: ClientMessage | ServerMessage, subprotocol: str) -> str | bytes:
    """Return the frame of a message: text for the JSON subprotocol, bytes for MessagePack.

    Lone surrogates, such as those of a path that is not UTF-8, become U+FFFD.
    """
    try:
        return _encoded(message, subprotocol)
    except UnicodeEncodeError:
        return _encoded(well_formed(msgspec.to_builtins(message)), subprotocol)


def decode_client(frame: str | bytes) -> ClientMessage:
    """Decode a client's message: text is JSON, bytes are MessagePack. Raises ServiceError ``bad_message``."""
    return _decode(frame, *_CLIENT)


class Addressed(msgspec.Struct, frozen=True):
    """The ``type``, ``id`` and ``uri`` of a frame that does not parse as a message; "" for each that is missing."""

    type: str = ""
    id: str = ""
    uri: str = ""


def addressed(frame: str | bytes) -> Addressed:
    """Return type, id and uri of a frame that ``decode_client`` refused, so that the error can name them."""
    try:
        # JavaScript leaves half of a surrogate pair where half a character was deleted.
        return decode_leniently(frame.encode(), Addressed) if isinstance(frame, str) else _ADDRESSED.decode(frame)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Addressed()


def decode_server(frame: str | bytes) -> ServerMessage:
    """Decode a server's message: text is JSON, bytes are MessagePack. Raises ServiceError ``bad_message``."""
    return _decode(frame, *_SERVER)


M = TypeVar("M")

_CLIENT = msgspec.json.Decoder[ClientMessage](ClientMessage), msgspec.msgpack.Decoder[ClientMessage](ClientMessage)
_SERVER = msgspec.json.Decoder[ServerMessage](ServerMessage), msgspec.msgpack.Decoder[ServerMessage](ServerMessage)
_ADDRESSED: msgspec.msgpack.Decoder[Addressed] = msgspec.msgpack.Decoder(Addressed)


def _encoded(value: Any, subprotocol: str) -> str | bytes:
    return msgspec.msgpack.encode(value) if subprotocol == MSGPACK else msgspec.json.encode(value).decode()


def _decode(frame: str | bytes, text: msgspec.json.Decoder[M], binary: msgspec.msgpack.Decoder[M]) -> M:
    try:
        return text.decode(frame) if isinstance(frame, str) else binary.decode(frame)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        name, written = (JSON, "JSON") if isinstance(frame, str) else (MSGPACK, "MessagePack")
        reason = str(error).replace("JSON", written)  # a recursion in MessagePack
        raise ServiceError("bad_message", f"not a message of {name}: {reason}") from None


# --- JSON as existing clients send it: with halves of surrogate pairs, and with integers written as ``4.0``

T = TypeVar("T")

# Halves of surrogate pairs, after whatever else there is before them: plain text, other escapes, and pairs.
_PAIR = rb"\\u[dD][89abAB]..\\u[dD][c-fC-F].."
_HALVES = re.compile(
    rb"((?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])|%b){1,1000}+)|(?:(?!%b)\\u[dD][89a-fA-F]..){1,1000}+" % (_PAIR, _PAIR),
    re.DOTALL,
)
# In a text with more such pieces, not all halves are replaced.
MAX_PIECES = 20_000


def decode_leniently(data: bytes, kind: type[T]) -> T:
    """Decode JSON. Raises msgspec.MsgspecError where ``data`` is not JSON or not of this kind, and RecursionError."""
    try:
        return _whole_floats(data, kind)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError):
            raise
        # Every half of a surrogate pair becomes U+FFFD.
        mended = _HALVES.sub(lambda found: found[1] or rb"\ufffd" * (len(found[0]) // 6), data, MAX_PIECES)
        if mended == data:
            raise
    return _whole_floats(mended, kind)


def _whole_floats(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
    return msgspec.json.decode(data, type=kind, strict=False)
