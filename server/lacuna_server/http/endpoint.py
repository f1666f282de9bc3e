"""The HTTP handler that all shapes share: reads a body, submits its request, answers; cancels it if the client leaves.

A shape is the format of one kind of client for requests, answers and refusals.
"""

import asyncio
import inspect
import math
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, get_type_hints

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from lacuna_model.core.params import AnswerChat, Snapshot
from lacuna_server.http.metrics import Metrics
from lacuna_server.http.shapes.exchange import Answer, Asked, Body, Exchange, FieldError
from lacuna_server.service.guard import refused
from lacuna_server.service.service import Service
from lacuna_server.wire.frames import Submission
from lacuna_server.wire.protocol import ErrorCode, ServiceError, decode_leniently

Family = Literal["openai", "llama"]

# The statuses of errors; all others have 503.
_STATUS: dict[ErrorCode, int] = {
    "bad_message": 400,
    "bad_request": 400,
    "superseded": 409,
    "cancelled": 409,
    "too_slow": 408,
    "too_large": 413,
    "rate_limited": 429,
    "internal": 500,
}
# The names of error types by status, for the families openai and llama; other statuses are invalid_request_error.
_TYPES: dict[int, tuple[str, str]] = {
    429: ("rate_limit_error", "unavailable_error"),
    500: ("server_error", "server_error"),
    503: ("server_error", "unavailable_error"),
}


class OpenAiFault(msgspec.Struct, frozen=True):
    """The error in OpenAI's format; ``code`` is one of the service's stable error codes, ``param`` the wrong field."""

    message: str
    type: str
    code: str
    param: str | None = None


class OpenAiError(msgspec.Struct, frozen=True):
    """A refusal in OpenAI's format."""

    error: OpenAiFault


class LlamaFault(msgspec.Struct, frozen=True):
    """The error in llama.cpp's format; ``code`` is the HTTP status."""

    code: int
    message: str
    type: str


class LlamaError(msgspec.Struct, frozen=True):
    """A refusal in llama.cpp's format."""

    error: LlamaFault


def refusal_body(error: ServiceError, family: Family) -> OpenAiError | LlamaError:
    """Return the body of a refusal in the format of a family of clients."""
    code, field = _STATUS.get(error.code, 503), error.field if isinstance(error, FieldError) else None
    openai, llama = _TYPES.get(code, ("invalid_request_error", "invalid_request_error"))
    if family == "llama":
        return LlamaError(LlamaFault(code, str(error), llama))
    return OpenAiError(OpenAiFault(str(error), openai, error.code, field))


def json_response(body: Body, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response with a body in JSON."""
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


def refusal(error: ServiceError, family: Family = "openai") -> Response:
    """Return the response to a refused request, with ``Retry-After`` in seconds for statuses 429 and 503."""
    code = _STATUS.get(error.code, 503)
    headers = {}
    if code in (429, 503):
        headers["Retry-After"] = str(max(math.ceil(error.retry_after_ms / 1e3), 1))
    if error.code == "too_slow":
        headers["Connection"] = "close"  # the rest of the body would be taken for the next request
    return json_response(refusal_body(error, family), code, headers)


CHATS = "\0chat"  # no path
B = TypeVar("B", bound=Asked)
T = TypeVar("T")
# Where msgspec says which field has a wrong type or value.
_FIELD = re.compile(r" - at `\$\.(\w+)|missing required field `(\w+)`$")


@dataclass(frozen=True)
class Shape(Generic[B]):
    """One format of requests: its paths, and how it is read and answered.

    ``open`` makes the exchange from a decoded body and the model's name; its docstring is the summary of what it does.
    ``replies`` are the types of whole answers, ``chunks`` those of streamed events.
    """

    name: str
    open: Callable[[B, str], Exchange]
    paths: Sequence[str]
    family: Family
    replies: tuple[Any, ...]
    chunks: tuple[Any, ...]

    @cached_property
    def body(self) -> type[B]:
        """The type of a body."""
        kind: type[B] = get_type_hints(self.open)["body"]
        return kind

    @property
    def summary(self) -> str:
        """What becomes of a request, in a sentence or two."""
        return " ".join((inspect.getdoc(self.open) or "").split())

    def read(self, data: bytes, model: str) -> Exchange:
        """Decode the request in ``data``. Raises ServiceError with the reason where it is invalid."""
        try:
            body = decode_leniently(data, self.body)
            body.check()
            return self.open(body, model)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            wrong = _FIELD.search(str(error))
            if wrong:
                raise FieldError(wrong[1] or wrong[2], str(error), "bad_message") from None
            raise ServiceError("bad_message", str(error)) from None


def endpoints(service: Service, metrics: Metrics, shape: Shape[B]) -> list[Route]:
    """Return the routes of one shape."""

    async def handle(request: Request) -> Response:
        return await _Run(service, metrics, shape, request).response()

    return [Route(path, handle, methods=["POST"], name=f"{shape.name} {path}") for path in shape.paths]


class _Run:
    """One request, which is counted in the metrics when it ends."""

    def __init__(self, service: Service, metrics: Metrics, shape: Shape[Any], request: Request) -> None:
        self._service = service
        self._metrics = metrics
        self._shape = shape
        self._request = request
        self._trusted: bool = request.state.trusted
        self._began = time.monotonic()

    async def response(self) -> Response:
        """Return the answer, or the refusal."""
        try:
            body = await _body(self._request, self._service.config.body_timeout_s)
            async with self._service.turns.turn(trusted=self._trusted):
                # In a thread: a body may be long, and decoding it would block the event loop.
                exchange = await asyncio.to_thread(self._shape.read, body, self._service.config.model)
            if exchange.stream:
                events = self._events(exchange)
                return EventStream(await _while_connected(self._request, anext(events)), events)
            reply = exchange.reply(await _while_connected(self._request, self._answer(exchange)))
        except ServiceError as error:
            refused(error, self._shape.name)
            self._ended(error.code)
            if error.code == "model_failed":
                self._service.model.retry()
            return refusal(error, self._shape.family)
        self._ended("ok")
        return json_response(reply)

    async def _answer(self, exchange: Exchange) -> Answer:
        async with aclosing(self._steps(exchange)) as steps:
            (answer,) = [step async for step in steps if isinstance(step, Answer)]
        return answer

    async def _events(self, exchange: Exchange) -> AsyncGenerator[bytes]:
        """Yield the answer as server-sent events; a refusal is one of them, unless it is raised before the first."""
        outcome = ""  # "": nothing is sent yet
        try:
            async with aclosing(self._steps(exchange)) as steps:
                async for step in steps:
                    for chunk in exchange.last(step) if isinstance(step, Answer) else exchange.chunks(step):
                        outcome = "cancelled"  # unless it goes on
                        yield event(chunk)
            outcome = "ok"
            yield exchange.style.end
        except ServiceError as error:
            if not outcome:
                raise
            outcome = error.code
            refused(error, self._shape.name)
            yield event(refusal_body(error, self._shape.family))
        finally:
            if outcome:
                self._ended(outcome)

    async def _steps(self, exchange: Exchange) -> AsyncGenerator[Snapshot | Answer]:
        """Yield every snapshot, then the answer. Cancel the request when the iteration ends early."""
        if exchange.ready is not None:
            yield exchange.ready
            return
        first_at, asked, limit = math.inf, exchange.request, self._service.config.max_document_bytes
        if len(asked.text.encode()) > limit:
            raise ServiceError("too_large", f"prefix and suffix together have more than {limit} bytes")
        address = self._request.client.host if self._request.client else ""
        ticket = self._service.model.submit(
            Submission(
                asked,
                session=f"http {self._trusted} {address} {self._request.headers.get('user-agent', '')[:80]}",
                # A chat has a context of its own, and suggestions need not wait for its end.
                document=CHATS if isinstance(asked.task, AnswerChat) else asked.path,
                snapshots=exchange.needs_steps,
                preferred=self._trusted,
            )
        )
        try:
            async for step in ticket.events():
                if isinstance(step, Snapshot):
                    first_at = min(first_at, time.monotonic())
                    yield step
                    if (early := exchange.early(step, (time.monotonic() - first_at) * 1e3)) is not None:
                        yield early
                        return
            yield exchange.answer(await ticket.result())
        except ServiceError as error:
            if exchange.form is not None and str(error).startswith(("json_schema", "regex")):
                why = str(error).removeprefix("json_schema is ")
                raise FieldError(exchange.form.field, why) from None  # as the client calls it
            raise
        finally:
            ticket.cancel()

    def _ended(self, outcome: str) -> None:
        self._metrics.answered(self._shape.name, outcome, time.monotonic() - self._began)


async def _one_by_one(first: bytes, events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the events, with pauses in which asyncio can notice a closed connection; it logs every write after that."""
    yield first
    await asyncio.sleep(0)
    async for one in events:
        yield one
        await asyncio.sleep(0)


class EventStream(StreamingResponse):
    """Server-sent events, of which the first is there; the generator is closed with the connection."""

    def __init__(self, first: bytes, events: AsyncGenerator[bytes]) -> None:
        content = _one_by_one(first, events)
        super().__init__(content, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events, unless the client leaves."""
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


async def _body(request: Request, timeout_s: float) -> bytes:
    """Return the body. Raises ServiceError where it is too large or too slow, or the client leaves."""
    try:
        async with asyncio.timeout(timeout_s or None):
            return await request.body()
    except TimeoutError:
        raise ServiceError("too_slow", f"the request body did not arrive within {timeout_s:g} s") from None
    except HTTPException as error:
        too_large = error.status_code == _STATUS["too_large"]
        raise ServiceError("too_large" if too_large else "bad_request", error.detail) from None
    except ClientDisconnect:
        raise ServiceError("cancelled", "the client disconnected") from None


def event(body: Body) -> bytes:
    """Encode one server-sent event. The JSON has no spaces: llama.vim looks for ``"content":"`` in the raw text."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


async def _while_connected(request: Request, answer: Awaitable[T]) -> T:
    """Return what is awaited. Raises ServiceError ``cancelled`` where the client leaves before."""
    tasks = asyncio.ensure_future(answer), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise ServiceError("cancelled", "the client disconnected")
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
