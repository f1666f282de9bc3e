"""One client's request in the shape it came in, and how it is answered in that shape."""

import time
import uuid
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from lacuna_model.core.params import Snapshot
from lacuna_server.http.shapes.answer import Answer
from lacuna_server.http.shapes.question import Question

# A JSON body: a struct, or the list or map that a client wants at the root.
Body = msgspec.Struct | list[Any] | dict[str, Any]

DONE = b"data: [DONE]\n\n"


class Exchange(Protocol):
    """What the handler needs of a request; ``ready`` is the answer where no model has to be asked."""

    question: Question
    ready: Answer | None
    stream: bool
    end: bytes

    def reply(self, answer: Answer) -> Body:
        """The body of an answer that is not streamed."""
        ...

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """What is streamed after a step."""
        ...

    def last(self, answer: Answer) -> Iterable[Body]:
        """What is streamed at the end; the bytes ``end`` follow."""
        ...


class Stamp(msgspec.Struct, frozen=True):
    """What all parts of one OpenAI answer have in common; ``created`` is in seconds since 1970."""

    id: str
    created: int
    model: str

    @classmethod
    def new(cls, kind: str, model: str) -> "Stamp":
        """A stamp of its own: ids begin with ``kind``."""
        return cls(f"{kind}-{uuid.uuid4().hex}", int(time.time()), model)


class Usage(msgspec.Struct, frozen=True):
    """Tokens of the context, of the fill, and of both."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, answer: Answer) -> "Usage":
        """The usage of an answer."""
        stats = answer.stats
        return cls(stats.context_tokens, stats.tokens, stats.context_tokens + stats.tokens)


def event(body: Body) -> bytes:
    """One server-sent event. No space follows a colon: llama.vim looks for ``"content":"`` in the raw text."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"
