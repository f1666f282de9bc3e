"""The shape of llama.cpp's server: ``/infill`` and ``/completion`` (for llama.vim, llama.vscode and Continue)."""

from collections.abc import Iterable
from typing import Any

import msgspec

from lacuna_model.core.params import FillStats, Snapshot, Snippet
from lacuna_server.http.shapes.answer import NOTHING, Answer, Body, Deltas
from lacuna_server.http.shapes.question import Asked, Prompt, Question, only
from lacuna_server.http.shapes.sentinels import parse


class Chunk(msgspec.Struct, frozen=True):
    """A piece of another file, from the ring of chunks that llama.vim keeps."""

    text: str
    filename: str = ""


class _Sampling(Asked, frozen=True, kw_only=True):
    """What both endpoints of llama.cpp share; with ``response_fields`` the answer has those fields alone."""

    response_fields: list[str] | None = None


class Infill(_Sampling, frozen=True, kw_only=True):
    """The body of ``/infill``; ``prompt`` is the part of the cursor's line before the cursor."""

    input_prefix: str
    input_suffix: str
    input_extra: list[Chunk] | None = None
    prompt: Prompt = ""


class Completion(_Sampling, frozen=True, kw_only=True):
    """The body of ``/completion``; ``prompt`` is a text to continue, or prefix and suffix marked by FIM sentinels."""

    prompt: Prompt


class Timings(msgspec.Struct, frozen=True):
    """The time of context and fill, in milliseconds and tokens per second."""

    prompt_n: int
    prompt_ms: float
    prompt_per_token_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_token_ms: float
    predicted_per_second: float

    @classmethod
    def of(cls, stats: FillStats) -> "Timings":
        """Return the timings of a fill: encoding the context counts as the prompt, the rest as the prediction."""
        encoded, predict_ms = stats.context_tokens - stats.cached_tokens, max(stats.ms - stats.encode_ms, 0.0)
        return cls(*_rates(encoded, stats.encode_ms), *_rates(stats.tokens, predict_ms))


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, or a streamed piece of one where ``stop`` is false."""

    content: str
    index: int = 0
    stop: bool = True


class LlamaReply(Content, frozen=True, kw_only=True):
    """The end of an answer, with its counts and timings; ``truncated`` is always false."""

    model: str
    stop_type: str
    stopping_word: str = ""
    truncated: bool = False
    tokens_predicted: int
    tokens_evaluated: int
    tokens_cached: int
    timings: Timings


class LlamaExchange:
    """One request of this shape."""

    end = b""

    def __init__(self, body: Infill | Completion, question: Question, model: str) -> None:
        self.question = question
        self.ready = NOTHING if question.is_warm_up else None
        self.stream = bool(body.stream)
        self._model = model
        self._fields = body.response_fields
        self._many = question.candidates > 1
        self._deltas = Deltas(question.stop)

    @classmethod
    def infill(cls, body: Infill, model: str) -> "LlamaExchange":
        """Return the exchange of a request to ``/infill``."""
        snippets = tuple(Snippet(chunk.filename, chunk.text, reason="input_extra") for chunk in body.input_extra or ())
        question = body.question(body.input_prefix + only(body.prompt), body.input_suffix, snippets=snippets)
        return cls(body, question, model)

    @classmethod
    def completion(cls, body: Completion, model: str) -> "LlamaExchange":
        """Return the exchange of a request to ``/completion``."""
        prompt = parse(only(body.prompt))
        question = body.question(prompt.before, prompt.after, path=prompt.path, snippets=prompt.snippets)
        return cls(body, question, model)

    def reply(self, answer: Answer) -> Body:
        """Return one object, or a list of objects where the request asked for several fills."""
        found: list[Any] = [self._whole(answer, text, index) for index, text in enumerate(answer.texts)]
        if self._fields:
            found = [select(one, self._fields) for one in found]
        return found if self._many else found[0]

    def chunks(self, snapshot: Snapshot) -> Iterable[Body]:
        """Yield the text that has become final."""
        if text := self._deltas.after(snapshot):
            yield Content(content=text, stop=False)

    def last(self, answer: Answer) -> Iterable[Body]:
        """Yield the rest of each text, then its counts and timings; llama.cpp sends no ``[DONE]``."""
        first, *others = answer.texts
        for index, text in enumerate([self._deltas.last(first), *others]):
            if text:
                yield Content(content=text, index=index, stop=False)
            yield self._whole(answer, "", index)

    def _whole(self, answer: Answer, text: str, index: int) -> LlamaReply:
        stats, word = answer.stats, answer.words[index] if answer.words else ""
        return LlamaReply(
            content=text,
            index=index,
            model=self._model,
            stop_type="word" if word else "limit" if answer.finish == "length" else "eos",
            stopping_word=word,
            tokens_predicted=stats.tokens,
            tokens_evaluated=stats.context_tokens,
            tokens_cached=stats.cached_tokens,
            timings=Timings.of(stats),
        )


def select(reply: LlamaReply, fields: list[str]) -> dict[str, object]:
    """Return only the requested fields. A path such as ``timings/predicted_n`` is itself the key in the result."""
    picked: dict[str, object] = {}
    for field in fields:
        value: Any = msgspec.to_builtins(reply)
        for key in field.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            picked[field] = value
    return picked


def _rates(tokens: int, ms: float) -> tuple[int, float, float, float]:
    return tokens, ms, ms / tokens if tokens else 0.0, 1e3 * tokens / ms if ms else 0.0
