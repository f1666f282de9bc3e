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
    Style,
    only,
)
from lacuna_server.http.shapes.sentinels import parse


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that all parts of one OpenAI answer share; ``created`` is in seconds since 1970."""

    id: str
    created: int
    model: str


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


DONE = b"data: [DONE]\n\n"


def _stamp(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"{kind}-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}


def text_style(body: TextRequest, model: str) -> Style:
    """Return how answers are told as text completions."""
    stamp = _stamp("cmpl", model)

    def reply(choices: list[TextChoice], usage: Usage | None = None) -> TextReply:
        return TextReply(**stamp, choices=choices, usage=usage)

    def whole(texts: Sequence[str], answer: Answer) -> Body:
        choices = [TextChoice(index, text, answer.finish) for index, text in enumerate(texts)]
        return reply(choices, Usage.of(answer))

    def piece(text: str, share: float | None) -> Body:
        return reply([TextChoice(0, text)])

    def last(texts: Sequence[str], answer: Answer, share: float | None) -> Iterator[Body]:
        for index, text in enumerate(texts):
            yield reply([TextChoice(index, text, answer.finish)])
        if body.stream_options and body.stream_options.include_usage:
            yield reply([], Usage.of(answer))

    return Style(whole, piece, last, DONE)


def completion(body: TextRequest, model: str) -> Exchange:
    """Fill the gap between prompt and suffix, or between the FIM sentinels of the prompt, as OpenAI does.

    A prompt in the format of Sweep's or Zed's next-edit models gets its window as it would become.
    """
    # A window has what follows from the last changes; where nothing does, the model writes at the cursor, and no stop
    # string cuts that.
    style = text_style(body, model)
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


def chat_style(model: str) -> Style:
    """Return how answers are told as chat messages."""
    stamp = _stamp("chatcmpl", model)

    def whole(texts: Sequence[str], answer: Answer) -> Body:
        choices = [
            ChatChoice(index=index, message=AssistantText(text), text=text, finish_reason=answer.finish)
            for index, text in enumerate(texts)
        ]
        return ChatReply(**stamp, choices=choices, usage=Usage.of(answer))

    def piece(text: str, share: float | None, answer: Answer | None = None, index: int = 0) -> Body:
        finish = answer.finish if answer else None
        return ChatChunk(
            **stamp,
            object="chat.completion.chunk",
            choices=[ChunkChoice(index=index, delta=AssistantText(text), text=text, finish_reason=finish)],
            usage=Usage.of(answer) if answer and not index else None,
            diffusion_meta=None if share is None else DiffusionMeta(share),
        )

    def last(texts: Sequence[str], answer: Answer, share: float | None) -> Iterator[Body]:
        return (piece(text, share, answer, index) for index, text in enumerate(texts))

    return Style(whole, piece, last, DONE)


class FimRequest(GapRequest, frozen=True, kw_only=True):
    """The body of a fill that is answered with chat messages."""

    diffusing: bool | None = None


def fim(body: FimRequest, model: str) -> Exchange:
    """Fill the gap between prompt and suffix, as Mercury and Mistral do."""
    return body.exchange(body.gap(), chat_style(model), diffusing=bool(body.diffusing))
