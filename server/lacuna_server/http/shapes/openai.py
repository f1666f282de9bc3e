"""OpenAI's shapes: text completions, and answers as chat messages, which Mercury and Mistral have for fills too.

A fill is between a prompt and a suffix, between FIM sentinels, or in the prompt of a next-edit model. With
``diffusing`` every streamed ``delta.content`` is the whole present text, and replaces the previous one.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

import msgspec

from lacuna_model.core.params import FillStats, Snapshot
from lacuna_server.http.shapes import windows
from lacuna_server.http.shapes.answer import DONE, NOTHING, Answer, Body, Deltas, Finish, Stamp, Usage, progress
from lacuna_server.http.shapes.question import DEFAULT_TOKENS, Asked, FieldError, Prompt, Question, only
from lacuna_server.http.shapes.sentinels import parse
from lacuna_server.http.shapes.windows import Window


class StreamOptions(msgspec.Struct, frozen=True):
    """Options of a stream: ``include_usage`` adds a last chunk with the usage."""

    include_usage: bool | None = None


class GapRequest(Asked, frozen=True, kw_only=True):
    """The body of a fill between ``prompt`` and ``suffix``, or between the FIM sentinels of the prompt."""

    prompt: Prompt
    suffix: str | None = None

    def gap(self) -> Question:
        """Return the question. Raises FieldError for a field that cannot be served."""
        prompt = parse(only(self.prompt), self.suffix)
        return self.question(prompt.before, prompt.after, path=prompt.path, snippets=prompt.snippets)


class TextRequest(GapRequest, frozen=True, kw_only=True):
    """The body of a text completion."""

    stream_options: StreamOptions | None = None

    def window(self) -> Window | None:
        """Return the window that the prompt of a next-edit model asks to write anew; None for other prompts."""
        return windows.parse(only(self.prompt)) if self.suffix is None else None

    def at_cursor(self, window: Window) -> Question:
        """Return the question for the text at the cursor of a window, which no stop string cuts."""
        self.no_form("the answer is a window of the file")
        return replace(
            self.question(
                window.before + window.current[: window.cursor],
                window.current[window.cursor :] + window.after,
                path=window.path,
                snippets=window.snippets,
            ),
            stop=(),
            candidates=1,
            max_tokens=min(self.limit() or DEFAULT_TOKENS, DEFAULT_TOKENS),
        )


class TextChoice(msgspec.Struct, frozen=True):
    """One fill, or a streamed piece of one."""

    index: int
    text: str
    finish_reason: Finish | None = None
    logprobs: None = None


class TextReply(msgspec.Struct, frozen=True, kw_only=True):
    """A text completion, whole or a chunk of it."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage | None = None


class TextExchange:
    """One request of this shape."""

    end = DONE

    def __init__(self, body: TextRequest, model: str) -> None:
        self._window = body.window()
        self.question = body.gap() if self._window is None else body.at_cursor(self._window)
        self.ready = NOTHING if self.question.is_warm_up else self._followed()
        self.stream = bool(body.stream)
        self._with_usage = bool(body.stream_options and body.stream_options.include_usage)
        self._stamp = Stamp.new("cmpl", model)
        self._deltas = Deltas(self.question.stop)

    def _followed(self) -> Answer | None:
        """Return the window with what follows from the last changes; None where the model has to write."""
        if self._window is None or (new := self._window.followed()) == self._window.current:
            return None
        return Answer((new,), "stop", FillStats())

    def _texts(self, answer: Answer) -> list[str]:
        """Return the texts for the client: fills, or the window anew in the format of its prompt."""
        if self._window is None:
            return list(answer.texts)
        new = answer.texts[0] if answer is self.ready else self._window.filled(answer.texts[0])
        return [self._window.show(new)]

    def reply(self, answer: Answer) -> Body:
        """Return all fills, best first."""
        choices = [TextChoice(index, text, answer.finish) for index, text in enumerate(self._texts(answer))]
        return self._reply(choices, Usage.of(answer))

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """Yield the text of the first fill that has become final."""
        if self._window is None and (text := self._deltas.after(snapshot)):
            yield self._reply([TextChoice(0, text)])

    def last(self, answer: Answer) -> Iterable[Body]:
        """Yield the rest of the first fill, the other fills, and, if asked for, the usage."""
        first, *others = self._texts(answer)
        for index, text in enumerate([self._deltas.last(first), *others]):
            yield self._reply([TextChoice(index, text, answer.finish)])
        if self._with_usage:
            yield self._reply([], Usage.of(answer))

    def _reply(self, choices: list[TextChoice], usage: Usage | None = None) -> TextReply:
        stamp = self._stamp
        return TextReply(id=stamp.id, created=stamp.created, model=stamp.model, choices=choices, usage=usage)


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
        """Yield the rest of the first fill (when diffusing, the whole), the other fills, and why they ended."""
        first, *others = map(self._show, answer.texts)
        rest = first if self._diffusing else self._deltas.last(first)
        for index, text in enumerate([rest, *others]):
            yield self._chunk(text, answer, 1.0 if self._diffusing else None, index)

    def _chunk(self, text: str, answer: Answer | None = None, share: float | None = None, index: int = 0) -> ChatChunk:
        finish = answer.finish if answer else None
        return ChatChunk(
            id=self._stamp.id,
            object="chat.completion.chunk",
            created=self._stamp.created,
            model=self._stamp.model,
            choices=[ChunkChoice(index=index, delta=AssistantText(text), text=text, finish_reason=finish)],
            usage=Usage.of(answer) if answer and not index else None,
            diffusion_meta=None if share is None else DiffusionMeta(share),
        )
