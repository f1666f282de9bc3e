"""The shape of OpenAI's ``/v1/completions``, with a suffix or FIM sentinels (for Zed, Continue and minuet)."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from lacuna_model.core.params import Snapshot
from lacuna_server.http.shapes.answer import NOTHING, Answer, Deltas, Finish
from lacuna_server.http.shapes.exchange import DONE, Body, Stamp, Usage
from lacuna_server.http.shapes.fields import (
    Candidates,
    Count,
    Prompt,
    Seed,
    Stops,
    Temperature,
    limit,
    only,
    seed,
    stops,
)
from lacuna_server.http.shapes.question import Question
from lacuna_server.http.shapes.sentinels import parse


class StreamOptions(msgspec.Struct, frozen=True):
    """Options of a stream: ``include_usage`` adds a last chunk with the usage."""

    include_usage: bool | None = None


class TextRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a text completion. Options of other kinds of models are accepted and have no effect."""

    prompt: Prompt
    suffix: str | None = None
    model: str | None = None
    max_tokens: Count | None = None
    min_tokens: Count | None = None
    temperature: Temperature | None = None
    n: Candidates | None = None
    stop: Stops | None = None
    seed: Seed | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    diffusing: bool | None = None

    def question(self) -> Question:
        """Return the question: the gap between prompt and suffix, or between the sentinels in the prompt."""
        prompt = parse(only(self.prompt), self.suffix)
        return Question(
            before=prompt.before,
            after=prompt.after,
            stop=stops(self.stop),
            max_tokens=limit(self.max_tokens),
            min_tokens=limit(self.min_tokens) or 0,
            candidates=self.n or 1,
            temperature=self.temperature or 0.0,
            seed=seed(self.seed),
            path=prompt.path,
            snippets=prompt.snippets,
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
        self.question = body.question()
        self.ready = NOTHING if self.question.is_warm_up else None
        self.stream = bool(body.stream)
        self._with_usage = bool(body.stream_options and body.stream_options.include_usage)
        self._stamp = Stamp.new("cmpl", model)
        self._deltas = Deltas(self.question.stop)

    def reply(self, answer: Answer) -> Body:
        """Return all fills, best first."""
        choices = [TextChoice(index, text, answer.finish) for index, text in enumerate(answer.texts)]
        return self._reply(choices, Usage.of(answer))

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """Yield the text of the first fill that has become final."""
        if text := self._deltas.after(snapshot):
            yield self._reply([TextChoice(0, text)])

    def last(self, answer: Answer) -> Iterable[Body]:
        """Yield the rest of the first fill, the other fills, and, if asked for, the usage."""
        for index, text in enumerate([self._deltas.last(answer.texts[0]), *answer.texts[1:]]):
            yield self._reply([TextChoice(index, text, answer.finish)])
        if self._with_usage:
            yield self._reply([], Usage.of(answer))

    def _reply(self, choices: list[TextChoice], usage: Usage | None = None) -> TextReply:
        stamp = self._stamp
        return TextReply(id=stamp.id, created=stamp.created, model=stamp.model, choices=choices, usage=usage)
