"""One request in its shape, and its answer in the same shape."""

import time
import uuid
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from lacuna_model.core.params import Snapshot
from lacuna_server.http.shapes.answer import Answer
from lacuna_server.http.shapes.question import Question

# A JSON body: a struct, or a list or map where the client's format has one at the root.
Body = msgspec.Struct | list[Any] | dict[str, Any]

DONE = b"data: [DONE]\n\n"


class Exchange(Protocol):
    """A request as the handler uses it. ``ready`` is the answer where no model is needed, otherwise None."""

    question: Question
    ready: Answer | None
    stream: bool
    end: bytes

    def reply(self, answer: Answer) -> Body:
        """Return the body of an answer that is not streamed."""
        ...

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """Return the events to stream after a step."""
        ...

    def last(self, answer: Answer) -> Iterable[Body]:
        """Return the events to stream at the end; the bytes ``end`` follow."""
        ...


class Stamp(msgspec.Struct, frozen=True):
    """The fields that all parts of one OpenAI answer share; ``created`` is in seconds since 1970."""

    id: str
    created: int
    model: str

    @classmethod
    def new(cls, kind: str, model: str) -> "Stamp":
        """Return a stamp with a new id, which begins with ``kind``."""
        return cls(f"{kind}-{uuid.uuid4().hex}", int(time.time()), model)


class Usage(msgspec.Struct, frozen=True):
    """Tokens of the context, of the fill, and of both."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, answer: Answer) -> "Usage":
        """Return the usage of an answer."""
        stats = answer.stats
        return cls(stats.context_tokens, stats.tokens, stats.context_tokens + stats.tokens)


def event(body: Body) -> bytes:
    """Encode one server-sent event. The JSON has no spaces: llama.vim looks for ``"content":"`` in the raw text."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"
