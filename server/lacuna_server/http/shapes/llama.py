"""The shape of llama.cpp's server: ``/infill`` and ``/completion`` (for llama.vim, llama.vscode and Continue)."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from lacuna_model.core.params import FillStats, Snippet
from lacuna_server.http.shapes.exchange import Answer, Asked, Body, Exchange, Prompt, PromptText, Style, only
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
    prompt: PromptText = ""


class Completion(_Sampling, frozen=True, kw_only=True):
    """The body of ``/completion``; ``prompt`` is a text to continue, or prefix and suffix marked by FIM sentinels."""

    prompt: PromptText


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


def llama_style(body: _Sampling, model: str) -> Style:
    """Return how llama.cpp's server tells answers; it sends no ``[DONE]``."""

    def reply(text: str, answer: Answer, index: int) -> LlamaReply:
        stats, word = answer.stats, answer.words[index] if answer.words else ""
        return LlamaReply(
            content=text,
            index=index,
            model=model,
            stop_type="word" if word else "limit" if answer.finish == "length" else "eos",
            stopping_word=word,
            tokens_predicted=stats.tokens,
            tokens_evaluated=stats.context_tokens,
            tokens_cached=stats.cached_tokens,
            timings=Timings.of(stats),
        )

    def whole(texts: Sequence[str], answer: Answer) -> Body:
        found: list[Any] = [reply(text, answer, index) for index, text in enumerate(texts)]
        if body.response_fields:
            found = [select(one, body.response_fields) for one in found]
        return found if body.candidates > 1 else found[0]

    def piece(text: str, share: float | None) -> Body:
        return Content(content=text, stop=False)

    def last(texts: Sequence[str], answer: Answer, share: float | None) -> Iterator[Body]:
        for index, text in enumerate(texts):
            if text:
                yield Content(content=text, index=index, stop=False)
            yield reply("", answer, index)  # with its counts and timings

    return Style(whole, piece, last)


def infill(body: Infill, model: str) -> Exchange:
    """Fill a gap, as llama.cpp does.

    With `response_fields` the answer has those fields alone, with `n_cmpl` it is a list.
    """
    snippets = tuple(Snippet(chunk.filename, chunk.text, reason="input_extra") for chunk in body.input_extra or ())
    before = body.input_prefix + only(body.prompt)
    return body.exchange(Prompt(before, body.input_suffix, snippets=snippets), llama_style(body, model))


def completion(body: Completion, model: str) -> Exchange:
    """Go on with a prompt, or fill the gap between its FIM sentinels, as llama.cpp does."""
    return body.exchange(parse(only(body.prompt)), llama_style(body, model))


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
