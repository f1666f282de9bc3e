"""The shape of OpenAI's ``/v1/completions``, with a suffix, FIM sentinels or the prompt of a next-edit model."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import msgspec

from lacuna_model.core.params import FillStats, Snapshot
from lacuna_server.http.shapes import windows
from lacuna_server.http.shapes.answer import NOTHING, Answer, Deltas, Finish
from lacuna_server.http.shapes.asked import Asked
from lacuna_server.http.shapes.exchange import DONE, Body, Stamp, Usage
from lacuna_server.http.shapes.fields import FieldError, Prompt, only
from lacuna_server.http.shapes.question import DEFAULT_TOKENS, Question
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
    echo: bool | None = None

    def window(self) -> Window | None:
        """Return the window that the prompt of a next-edit model asks to write anew; None for other prompts."""
        return windows.parse(only(self.prompt)) if self.suffix is None else None

    def at_cursor(self, window: Window) -> Question:
        """Return the question for the text at the cursor of a window, which no stop string cuts."""
        self.no_form(why := "the answer is a window of the file")
        if self.echo:
            raise FieldError("echo", f"{why}; leave the field out")
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
        self._echoed = only(body.prompt) if body.echo else ""
        self._unsent = self._echoed
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
        texts = (self._echoed + text for text in self._texts(answer))
        choices = [TextChoice(index, text, answer.finish) for index, text in enumerate(texts)]
        return self._reply(choices, Usage.of(answer))

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """Yield the text of the first fill that has become final."""
        if self._window is None and (text := self._deltas.after(snapshot)):
            yield self._reply([TextChoice(0, self._begun() + text)])

    def last(self, answer: Answer) -> Iterable[Body]:
        """Yield the rest of the first fill, the other fills, and, if asked for, the usage."""
        first, *others = self._texts(answer)
        echoed, rest = self._echoed, self._begun() + self._deltas.last(first)
        for index, text in enumerate([rest, *(echoed + text for text in others)]):
            yield self._reply([TextChoice(index, text, answer.finish)])
        if self._with_usage:
            yield self._reply([], Usage.of(answer))

    def _begun(self) -> str:
        """Return what comes before the first piece of text: the prompt, where the client wants its echo."""
        begun, self._unsent = self._unsent, ""
        return begun

    def _reply(self, choices: list[TextChoice], usage: Usage | None = None) -> TextReply:
        stamp = self._stamp
        return TextReply(id=stamp.id, created=stamp.created, model=stamp.model, choices=choices, usage=usage)
