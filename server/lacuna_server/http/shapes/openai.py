"""OpenAI's shapes: text completions, and answers as chat messages, which Mercury and Mistral have for fills too.

A fill is between a prompt and a suffix, between FIM sentinels, or in the prompt of a next-edit model. With
``diffusing`` every streamed ``delta.content`` is the whole present text, and replaces the previous one.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from lacuna_server.http.shapes import windows
from lacuna_server.http.shapes.exchange import (
    DEFAULT_TOKENS,
    Answer,
    Asked,
    Body,
    Exchange,
    FieldError,
    Finish,
    Prompt,
    PromptText,
    only,
)
from lacuna_server.http.shapes.sentinels import parse

DONE = b"data: [DONE]\n\n"


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that all parts of one OpenAI answer share; ``created`` is in seconds since 1970."""

    id: str
    created: int
    model: str


def stamp(kind: str, model: str) -> dict[str, Any]:
    """Return the fields of a stamp with a new id, which begins with ``kind``."""
    return {"id": f"{kind}-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}


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


class StreamOptions(msgspec.Struct, frozen=True):
    """Options of a stream: ``include_usage`` adds a last chunk with the usage."""

    include_usage: bool | None = None


class GapRequest(Asked, frozen=True, kw_only=True):
    """The body of a fill between ``prompt`` and ``suffix``, or between the FIM sentinels of the prompt."""

    prompt: PromptText
    suffix: str | None = None

    def gap(self) -> Prompt:
        """Return the text around the gap. Raises FieldError where there are several prompts."""
        return parse(only(self.prompt), self.suffix)


class TextRequest(GapRequest, frozen=True, kw_only=True):
    """The body of a text completion."""

    stream_options: StreamOptions | None = None


class TextChoice(msgspec.Struct, frozen=True):
    """One fill, or a streamed piece of one."""

    index: int
    text: str
    finish_reason: Finish | None = None
    logprobs: None = None


class TextReply(Stamp, frozen=True, kw_only=True):
    """A text completion, whole or a chunk of it."""

    object: Literal["text_completion"] = "text_completion"
    choices: list[TextChoice]
    usage: Usage | None = None


class TextStyle:
    """Answers as text completions."""

    end = DONE

    def __init__(self, body: TextRequest, model: str) -> None:
        self._with_usage = bool(body.stream_options and body.stream_options.include_usage)
        self._stamp = stamp("cmpl", model)

    def whole(self, texts: Sequence[str], answer: Answer) -> Body:
        """Return all fills, best first."""
        choices = [TextChoice(index, text, answer.finish) for index, text in enumerate(texts)]
        return self._reply(choices, Usage.of(answer))

    def piece(self, text: str, share: float | None) -> Body:
        """Return a piece of the first fill."""
        return self._reply([TextChoice(0, text)])

    def last(self, texts: Sequence[str], answer: Answer, share: float | None) -> Iterator[Body]:
        """Yield the fills, and, if asked for, the usage."""
        for index, text in enumerate(texts):
            yield self._reply([TextChoice(index, text, answer.finish)])
        if self._with_usage:
            yield self._reply([], Usage.of(answer))

    def _reply(self, choices: list[TextChoice], usage: Usage | None = None) -> TextReply:
        return TextReply(**self._stamp, choices=choices, usage=usage)


def completion(body: TextRequest, model: str) -> Exchange:
    """Fill the gap between prompt and suffix, or between the FIM sentinels of the prompt, as OpenAI does.

    A prompt in the format of Sweep's or Zed's next-edit models gets its window as it would become.
    """
    # A window has what follows from the last changes; where nothing does, the model writes at the cursor, and no stop
    # string cuts that.
    style = TextStyle(body, model)
    window = windows.parse(only(body.prompt)) if body.suffix is None else None
    if window is None:
        return body.exchange(body.gap(), style)
    body.no_form("the answer is a window of the file")
    tokens = min(body.limit() or DEFAULT_TOKENS, DEFAULT_TOKENS)
    asked = msgspec.structs.replace(body, stop=None, n=None, n_cmpl=None, max_completion_tokens=tokens)
    before, after = window.before + window.current[: window.cursor], window.current[window.cursor :] + window.after
    prompt, new = Prompt(before, after, window.path, window.snippets), window.followed()
    ready = None if new == window.current else Answer((window.show(new),))
    return asked.exchange(prompt, style, show=lambda fill: window.show(window.filled(fill)), ready=ready)


class Part(msgspec.Struct, frozen=True):
    """A part of a message."""

    type: str
    text: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message of a chat."""

    role: str
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The text of all parts. Raises FieldError where a part is no text, such as an image."""
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if part.type != "text":
                raise FieldError("messages", f"a part is {part.type[:40]!r}; the model reads text only")
        return "".join(part.text for part in self.content)


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


class ChatReply(Stamp, frozen=True, kw_only=True):
    """A whole answer."""

    object: Literal["chat.completion"] = "chat.completion"
    choices: list[ChatChoice]
    usage: Usage


class ChatChunk(Stamp, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a streamed answer."""

    choices: list[ChunkChoice]
    object: Literal["chat.completion.chunk"] | None = None
    usage: Usage | None = None
    diffusion_meta: DiffusionMeta | None = None


class ChatStyle:
    """Answers as chat messages."""

    end = DONE

    def __init__(self, model: str) -> None:
        self._stamp = stamp("chatcmpl", model)

    def whole(self, texts: Sequence[str], answer: Answer) -> Body:
        """Return all fills, best first."""
        choices = [
            ChatChoice(index=index, message=AssistantText(text), text=text, finish_reason=answer.finish)
            for index, text in enumerate(texts)
        ]
        return ChatReply(**self._stamp, choices=choices, usage=Usage.of(answer))

    def piece(self, text: str, share: float | None, answer: Answer | None = None, index: int = 0) -> Body:
        """Return a piece of a fill; with its ``answer``, the last one."""
        finish = answer.finish if answer else None
        return ChatChunk(
            **self._stamp,
            object="chat.completion.chunk",
            choices=[ChunkChoice(index=index, delta=AssistantText(text), text=text, finish_reason=finish)],
            usage=Usage.of(answer) if answer and not index else None,
            diffusion_meta=None if share is None else DiffusionMeta(share),
        )

    def last(self, texts: Sequence[str], answer: Answer, share: float | None) -> Iterator[Body]:
        """Yield the fills, and why they ended."""
        return (self.piece(text, share, answer, index) for index, text in enumerate(texts))


class FimRequest(GapRequest, frozen=True, kw_only=True):
    """The body of a fill that is answered with chat messages."""

    diffusing: bool | None = None


def fim(body: FimRequest, model: str) -> Exchange:
    """Fill the gap between prompt and suffix, as Mercury and Mistral do."""
    return body.exchange(body.gap(), ChatStyle(model), diffusing=bool(body.diffusing))
