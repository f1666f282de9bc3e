"""Answers as chat messages: fill-in-the-middle of Mercury and Mistral, next edits, and chat completions.

With ``diffusing`` every streamed ``delta.content`` is the whole present text, and replaces the previous one.
"""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from lacuna_model.core.params import Snapshot
from lacuna_server.http.shapes.answer import NOTHING, Answer, Deltas, Finish, progress
from lacuna_server.http.shapes.exchange import DONE, Body, Stamp, Usage
from lacuna_server.http.shapes.fields import FieldError
from lacuna_server.http.shapes.openai import GapRequest
from lacuna_server.http.shapes.question import Question

# The types of parts that are text, in the two generations of OpenAI's API.
TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})


class Part(msgspec.Struct, frozen=True):
    """A part of a message."""

    type: str
    text: str = ""
    refusal: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message of a chat; one with ``prefix`` would be the beginning of the answer."""

    role: str
    content: str | list[Part] | None = None
    prefix: bool | None = None

    @property
    def text(self) -> str:
        """The text of all parts. Raises FieldError where a part is no text, such as an image, and for a prefix."""
        if self.prefix:
            raise FieldError("messages", "an answer has no prefix; leave the field out")
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if part.type not in TEXTS:
                raise FieldError("messages", f"a part is {part.type[:40]!r}; the model reads text only")
        return "".join(part.text or part.refusal for part in self.content)


class AssistantText(msgspec.Struct, frozen=True):
    """The model's message."""

    content: str
    role: Literal["assistant"] = "assistant"


class ChatChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One fill. ``text`` repeats it for clients that expect a text completion."""

    index: int
    message: AssistantText
    text: str
    finish_reason: Finish | None = None


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a fill, or the whole fill so far."""

    index: int
    delta: AssistantText
    text: str
    finish_reason: Finish | None = None


class DiffusionMeta(msgspec.Struct, frozen=True):
    """The progress of a fill: the share of its slots that are committed, 0..1."""

    diffusion_progress: float


class ChatReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class ChatChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a streamed answer."""

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    object: Literal["chat.completion.chunk"] | None = None
    usage: Usage | None = None
    diffusion_meta: DiffusionMeta | None = None


class FimRequest(GapRequest, frozen=True, kw_only=True):
    """The body of a fill that is answered with chat messages."""

    diffusing: bool | None = None


def as_it_is(fill: str) -> str:
    """Return a fill unchanged."""
    return fill


class ChatExchange:
    """One request that is answered with chat messages; ``show`` turns a fill into a message."""

    end = DONE

    def __init__(
        self,
        question: Question,
        model: str,
        *,
        stream: bool,
        diffusing: bool,
        show: Callable[[str], str] = as_it_is,
        ready: Answer | None = None,
    ) -> None:
        self.question = question
        self.ready = NOTHING if question.is_warm_up else ready
        self.stream = stream
        self._diffusing = diffusing
        self._show = show
        self._stamp = Stamp.new("chatcmpl", model)
        self._deltas = Deltas(question.stop)

    @classmethod
    def fim(cls, body: FimRequest, model: str) -> "ChatExchange":
        """Return the exchange of a request to ``/v1/fim/completions``."""
        return cls(body.gap(), model, stream=bool(body.stream), diffusing=bool(body.diffusing))

    def reply(self, answer: Answer) -> Body:
        """Return all fills, best first."""
        shown = [self._show(text) for text in answer.texts]
        return ChatReply(
            id=self._stamp.id,
            created=self._stamp.created,
            model=self._stamp.model,
            choices=[
                ChatChoice(index=index, message=AssistantText(text), text=text, finish_reason=answer.finish)
                for index, text in enumerate(shown)
            ],
            usage=Usage.of(answer),
        )

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """Yield the whole fill when diffusing, else the text that has become final.

        A message that ``show`` builds around a fill is sent only at the end.
        """
        if self._diffusing:
            yield self._chunk(self._show(snapshot.fills[0]), share=progress(snapshot))
        elif self._show is as_it_is and (text := self._deltas.after(snapshot)):
            yield self._chunk(text)

    def last(self, answer: Answer) -> Iterable[Body]:
        """Yield the rest of the first fill (when diffusing, the whole) and why it ended."""
        shown = self._show(answer.texts[0])
        if self._diffusing:
            yield self._chunk(shown, answer, share=1.0)
        else:
            yield self._chunk(self._deltas.last(shown), answer)

    def _chunk(self, text: str, answer: Answer | None = None, share: float | None = None) -> ChatChunk:
        finish = answer.finish if answer else None
        return ChatChunk(
            id=self._stamp.id,
            object="chat.completion.chunk",
            created=self._stamp.created,
            model=self._stamp.model,
            choices=[ChunkChoice(index=0, delta=AssistantText(text), text=text, finish_reason=finish)],
            usage=Usage.of(answer) if answer else None,
            diffusion_meta=None if share is None else DiffusionMeta(share),
        )
