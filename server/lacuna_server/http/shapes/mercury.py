"""The tagged messages of Mercury: next edits (Zed, Continue) and updates to apply, read from a chat's last message."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from lacuna_model.core.params import FillStats, Snippet
from lacuna_server.http.shapes import apply, sentinels
from lacuna_server.http.shapes.answer import Answer
from lacuna_server.http.shapes.chat import ChatExchange, Message, as_it_is
from lacuna_server.http.shapes.fields import Seed, Stops, Temperature, limit, seed, stops
from lacuna_server.http.shapes.question import Question
from lacuna_server.wire.protocol import ServiceError

CURSOR = "<|cursor|>"
NO_EDIT = "None"

_SNIPPET_PATH, _FILE_PATH = "code_snippet_file_path: ", "current_file_path: "


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a chat. Only its last message counts: it holds a next edit, an update, or FIM sentinels."""

    messages: list[Message]
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: Temperature | None = None
    stop: Stops | None = None
    seed: Seed | None = None
    stream: bool | None = None
    diffusing: bool | None = None

    @property
    def text(self) -> str:
        """The last message; raises ServiceError where there is none."""
        if not self.messages:
            raise ServiceError("bad_request", "messages: there is none")
        return self.messages[-1].text

    def limit(self) -> int | None:
        """How many tokens are wanted; below 0 stands for any number."""
        return limit(self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens)


@dataclass(frozen=True, slots=True)
class Edit:
    """A region of a file with the cursor in it, which is where something is to be written."""

    path: str
    before: str
    head: str
    tail: str
    after: str
    snippets: tuple[Snippet, ...]

    @classmethod
    def parse(cls, message: str) -> "Edit":
        """The edit that a message asks for; raises ServiceError ``bad_request`` where a tag is missing."""
        path, file = _with_path(_tagged(message, "current_file_content"), _FILE_PATH)
        span = next(_spans(file, "code_to_edit"), None)
        if span is None:
            raise ServiceError(
                "bad_request", "the message lacks <|current_file_content|> or <|code_to_edit|> within it"
            )
        # The newlines behind the opening tag, in front of the closing one and behind it belong to the tags.
        region = file[span.start : span.end].removeprefix("\n")
        head, cursor, tail = region.partition(CURSOR)
        if not cursor:
            raise ServiceError("bad_request", f"the code to edit lacks {CURSOR}")
        line_end = "\n" if tail.endswith("\n") else ""
        snippets = tuple(
            Snippet(*_with_path(message[found.start : found.end].removeprefix("\n"), _SNIPPET_PATH), "recently viewed")
            for found in _spans(message, "recently_viewed_code_snippet")
        )
        after = line_end + file[span.close :].removeprefix("\n")
        return cls(path, file[: span.open], head, tail.removesuffix("\n"), after, snippets)

    def show(self, fill: str) -> str:
        """The region with the fill at the cursor, fenced as Mercury does; ``None`` where there is nothing to edit."""
        return f"```\n{self.head}{fill}{self.tail}\n```" if fill else NO_EDIT


def edit(body: ChatRequest, model: str) -> ChatExchange:
    """A request to ``/v1/edit/completions``."""
    asked = Edit.parse(body.text)
    question = _question(
        body, asked.before + asked.head, asked.tail + asked.after, path=asked.path, snippets=asked.snippets
    )
    return ChatExchange(question, model, stream=bool(body.stream), diffusing=bool(body.diffusing), show=asked.show)


def applied(body: ChatRequest, model: str) -> ChatExchange:
    """A request to ``/v1/apply/completions``, for which no model is needed."""
    if not is_update(body.text):
        raise ServiceError("bad_request", "the message lacks <|original_code|> or <|update_snippet|>")
    original, update = (_tagged(body.text, tag).removesuffix("\n") for tag in ("original_code", "update_snippet"))
    merged = Answer((apply.merge(original, update),), "stop", FillStats())
    return ChatExchange(
        Question(before=""), model, stream=bool(body.stream), diffusing=bool(body.diffusing), ready=merged
    )


def chat(body: ChatRequest, model: str) -> ChatExchange:
    """A request to ``/v1/chat/completions``: whatever of the above the last message holds."""
    text = body.text
    if is_update(text):
        return applied(body, model)
    if _tagged(text, "current_file_content"):
        return edit(body, model)
    if not sentinels.has_sentinels(text):
        raise ServiceError(
            "bad_request",
            "this model fills gaps and does not chat: the last message has to hold FIM sentinels, a next edit or an "
            "update to apply",
        )
    prompt = sentinels.parse(text)
    question = _question(body, prompt.before, prompt.after, path=prompt.path, snippets=prompt.snippets)
    return ChatExchange(question, model, stream=bool(body.stream), diffusing=bool(body.diffusing), show=as_it_is)


def _question(body: ChatRequest, before: str, after: str, *, path: str, snippets: tuple[Snippet, ...]) -> Question:
    return Question(
        before=before,
        after=after,
        stop=stops(body.stop),
        max_tokens=body.limit(),
        temperature=body.temperature or 0.0,
        seed=seed(body.seed),
        path=path,
        snippets=snippets,
    )


def is_update(message: str) -> bool:
    """Whether a message holds an update and what it is one of."""
    return all(any(_spans(message, tag)) for tag in ("original_code", "update_snippet"))


class _Span(NamedTuple):
    """What a tag holds, from ``start`` to ``end``, and with the tag itself from ``open`` to ``close``."""

    open: int
    start: int
    end: int
    close: int


def _spans(text: str, tag: str) -> Iterator[_Span]:
    """Every place that ``<|tag|>`` and ``<|/tag|>`` enclose, in one go through the text."""
    opening, closing = f"<|{tag}|>", f"<|/{tag}|>"
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        at = end + len(closing)
        yield _Span(start, start + len(opening), end, at)


def _tagged(text: str, tag: str) -> str:
    """What the first such tag holds, behind its line; "" where there is none."""
    span = next(_spans(text, tag), None)
    return text[span.start : span.end].removeprefix("\n") if span is not None else ""


def _with_path(text: str, label: str) -> tuple[str, str]:
    """The path that a label on the first line tells ("" where there is none), and the rest."""
    if not text.startswith(label):
        return "", text
    line, _, rest = text.partition("\n")
    return line.removeprefix(label), rest
