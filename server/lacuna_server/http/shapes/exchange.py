"""One request of a client, whatever its shape: one gap or chat, the limits and the form of its answer, and its answers.

Fills are cut at stop strings, and of a running fill the part is shown that will not change.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from lacuna_model.core.params import (
    MAX_CANDIDATES,
    AnswerChat,
    ChatMessage,
    DecodeOptions,
    FillGaps,
    FillStats,
    InfillRequest,
    InfillResult,
    Region,
    Snapshot,
    Snippet,
)
from lacuna_model.text.diff import num_common
from lacuna_server.wire.protocol import ErrorCode, ServiceError

# Clients write -1 for "no limit".
Count = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Candidates = Annotated[int, Meta(ge=1, le=MAX_CANDIDATES)]
Temperature = Annotated[float, Meta(ge=0, le=10)]
Seed = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]  # the absolute value fits in 64 bits
Milliseconds = Annotated[float, Meta(ge=-1e9, le=1e9)]  # as llama.cpp has it, 0 and less is no limit
# llama.cpp and vLLM take several prompts at once, so some clients send a list of one.
PromptText = str | list[str]
Stops = str | Annotated[list[str], Meta(max_length=256)]


class FieldError(ServiceError):
    """A ``field`` of a request is wrong or cannot be served; the message of one line names it first."""

    def __init__(self, field: str, why: str, code: ErrorCode = "bad_request") -> None:
        super().__init__(code, f"{field}: {why}")
        self.field = field


def only(prompt: PromptText) -> str:
    """Return the one prompt of a request. Raises FieldError where there are several or none."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1:
        raise FieldError("prompt", f"{len(prompt)} of them; a request has one")
    return prompt[0]


# A JSON schema, or the JSON text of one.
Schema = dict[str, Any] | bool | str


@dataclass(frozen=True, slots=True)
class Form:
    """What every answer matches: a regular expression or a JSON schema; ``field`` demands it."""

    field: str
    regex: str = ""
    json_schema: str = ""

    @classmethod
    def of_schema(cls, field: str, schema: Schema) -> "Form":
        """Return the form that a JSON schema describes."""
        text = schema if isinstance(schema, str) else msgspec.json.encode(schema).decode()
        return cls(field, json_schema=text)


class NamedSchema(msgspec.Struct, frozen=True):
    """A JSON schema with the name and the description that OpenAI wants; neither counts here."""

    schema: Schema | None = None


class ResponseFormat(msgspec.Struct, frozen=True):
    """The form of an answer as OpenAI tells it; llama.cpp also takes a ``schema`` without a name."""

    type: str = "text"
    json_schema: NamedSchema | None = None
    schema: Schema | None = None

    def form(self) -> Form | None:
        """Return the form; None for text. Raises FieldError for one that is not known."""
        if self.type == "text":
            return None
        if self.type not in ("json_object", "json_schema"):
            raise FieldError("response_format", f"{self.type[:40]!r} is none of text, json_object and json_schema")
        schema = self.schema if self.json_schema is None or self.json_schema.schema is None else self.json_schema.schema
        if schema is None and self.type == "json_schema":
            raise FieldError("response_format", "json_schema.schema is missing")
        return Form.of_schema("response_format", {"type": "object"} if schema is None else schema)


_NO_TOOLS = 'the model answers in words and calls no tool; leave it out, or send tool_choice "none"'
_NO_PROBABILITIES = "the probabilities of tokens are not told"
# Fields by which a request demands what no answer has, and why.
REFUSED: dict[str, str] = {
    "grammar": "an answer follows a JSON schema or a regular expression, as by response_format, and no grammar",
    "tools": _NO_TOOLS,
    "functions": _NO_TOOLS,
    "tool_choice": _NO_TOOLS,
    "function_call": _NO_TOOLS,
    "logprobs": _NO_PROBABILITIES,
    "top_logprobs": _NO_PROBABILITIES,
    "n_probs": _NO_PROBABILITIES,
    "logit_bias": "tokens have no other weights",
    "echo": "an answer does not repeat its prompt",
}
# What says that tools are only told of, and none is to be called.
_CALLS = {"tools": "tool_choice", "functions": "function_call"}

DEFAULT_TOKENS = Region(0, 0).max_tokens
# The longest fill, whatever a client asks for: clients' defaults of up to 4096 tokens are meant for other models.
MAX_TOKENS = 256
# The answers of a chat, and those that end with their form, by default and at most.
CHAT_TOKENS, MAX_CHAT_TOKENS = 512, 2048

# Some clients name the language in a comment on the first line (minuet: "# language: python").
_LANGUAGE_COMMENT = re.compile(r"\W{0,8}language: ?([\w+#]+)")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prefix and suffix of a gap, the path of its file ("": unknown), and the other files in the prompt."""

    before: str
    after: str = ""
    path: str = ""
    snippets: tuple[Snippet, ...] = ()


Finish = Literal["stop", "length"]
# A JSON body: a struct, or a list or map where the client's format has one at the root.
Body = msgspec.Struct | list[Any] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The fills of one gap, best first, and the reason why the first one ended.

    ``words`` are the stop strings that the fills end before, "" where there is none.
    """

    texts: tuple[str, ...]
    finish: Finish = "stop"
    stats: FillStats = field(default_factory=FillStats)
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Style:
    """How a kind of clients reads answers.

    ``whole`` makes the body of an answer that is not streamed, of its texts as they are shown. ``piece`` makes the
    event of a piece of text, of which a share (0..1) is committed (None: all). ``last`` makes the last events: the rest
    of the first text, and the other texts; ``end`` are the bytes behind them.
    """

    whole: Callable[[Sequence[str], Answer], Body]
    piece: Callable[[str, float | None], Body]
    last: Callable[[Sequence[str], Answer, float | None], Iterable[Body]]
    end: bytes = b""


@dataclass
class Exchange:
    """A request for one gap or chat, and how its answer is told.

    A fill ends before the first of the ``stop`` strings and has the ``form``. ``patience_ms`` is llama.cpp's time limit
    (None: no limit): it counts from the first step, and ends a fill only once the fill has a complete line.

    ``ready`` is the answer where no model is needed, as it is shown. ``show`` builds what the client is shown around a
    fill (None: the fill itself). A fill is streamed in pieces that the client appends to each other; a shown one, and
    the best of several or one with a form, which are only known at the end, at once. With ``diffusing`` each event has
    the whole text so far.
    """

    request: InfillRequest
    style: Style
    stop: tuple[str, ...]
    form: Form | None
    patience_ms: float | None
    stream: bool
    diffusing: bool = False
    show: Callable[[str], str] | None = None
    ready: Answer | None = None
    _sent: str = field(default="", init=False)

    def __post_init__(self) -> None:
        # Clients send the limit 0 to have their ring of chunks cached. Here this gains nothing, because other files are
        # encoded separately, and it would drop the open document from the cache.
        if self.ready is None and not self._limit:
            self.ready = Answer((self._shown(""),), "length")

    @property
    def _limit(self) -> int:
        return self.request.regions[0].max_tokens

    @property
    def _ends_whole(self) -> bool:
        """Whether only the end tells the answer: the best of several candidates, or one with a form."""
        return self.request.candidates > 1 or self.form is not None

    @property
    def needs_steps(self) -> bool:
        """Whether an answer is streamed, or may be known before the fill ends."""
        return self.stream or self.patience_ms is not None or any(stop != "\n" for stop in self.stop)

    def answer(self, result: InfillResult) -> Answer:
        """Return the answer that a result gives."""
        fills = [result.fills[0], *(fills[0] for fills in result.alternatives)]
        ends = [first_stop(fill, self.stop) for fill in fills]
        texts = tuple(fill[:at] for fill, (at, _) in zip(fills, ends, strict=True))
        unfit = self.form is not None and result.status != "ok"  # as where it is cut off: it lacks its form
        ended = texts[0] == fills[0] and (result.status == "deadline" or result.stats.tokens >= self._limit)
        words = tuple(word for _, word in ends)
        return Answer(texts, "length" if ended or unfit else "stop", result.stats, words)

    def early(self, snapshot: Snapshot, shown_ms: float) -> Answer | None:
        """Return the answer where the fill has not ended ``shown_ms`` after its first step; None where there is none.

        It is the complete lines that are committed, where a stop string is in them or the time limit is over.
        """
        is_late = self.patience_ms is not None and shown_ms >= self.patience_ms
        lines = final_lines(snapshot) if is_late or (self.stop and not self._ends_whole) else ""
        at, word = first_stop(f"{lines}\n", self.stop)
        if not lines or not (word or is_late):
            return None
        stats = FillStats(
            nfe=snapshot.nfe,
            steps=snapshot.step,
            tokens=_committed(snapshot),
            context_tokens=snapshot.context_tokens,
            cached_tokens=snapshot.cached_tokens,
        )
        return Answer((lines[:at],), "stop" if word else "length", stats, (word,))

    def reply(self, answer: Answer) -> Body:
        """Return the body of an answer that is not streamed."""
        return self.style.whole(self._texts(answer), answer)

    def chunks(self, snapshot: Snapshot) -> Iterator[Body]:
        """Yield the events to stream after a step.

        A piece is sent once it is final. A deadline cuts a fill at a line, and stop strings cut it too. So only
        complete lines are final, without their last newline and without a possible start of a stop string.
        """
        if self._ends_whole:
            return
        if self.diffusing:
            yield self.style.piece(
                self._shown(snapshot.fills[0]), _committed(snapshot) / max(len(snapshot.slots[0]), 1)
            )
        elif self.show is None:
            lines = final_lines(snapshot)
            at, _ = first_stop(lines, self.stop)
            if text := self._next(without_stop_start(lines[:at], self.stop)):
                yield self.style.piece(text, None)

    def last(self, answer: Answer) -> Iterator[Body]:
        """Yield the events to stream at the end; the bytes ``style.end`` follow."""
        first, *others = self._texts(answer)
        rest, share = (first, 1.0) if self.diffusing else (self._next(first), None)
        yield from self.style.last([rest, *others], answer, share)

    def _next(self, text: str) -> str:
        """Return what follows in a text on what was sent of it."""
        if not text.startswith(self._sent):
            return ""
        fresh, self._sent = text[len(self._sent) :], text
        return fresh

    def _texts(self, answer: Answer) -> list[str]:
        return [text if answer is self.ready else self._shown(text) for text in answer.texts]

    def _shown(self, fill: str) -> str:
        return self.show(fill) if self.show else fill


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and demands of a request.

    A negative number of tokens means the default, a negative seed any seed. There are at most ``n`` answers, which
    differ. ``t_max_predict_ms`` is llama.cpp's limit of time.
    """

    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    n_predict: Count | None = None
    n: Candidates | None = None
    n_cmpl: Candidates | None = None
    stop: Stops | None = None
    temperature: Temperature | None = None
    seed: Seed | None = None
    random_seed: Seed | None = None
    t_max_predict_ms: Milliseconds | None = None
    stream: bool | None = None
    response_format: ResponseFormat | None = None
    json_schema: Schema | None = None
    regex: str | None = None
    # The fields of REFUSED.
    grammar: Any = None
    tools: Any = None
    functions: Any = None
    tool_choice: Any = None
    function_call: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    n_probs: Any = None
    logit_bias: Any = None
    echo: Any = None

    def check(self) -> None:
        """Raise FieldError for the first field of REFUSED that demands something, as ``auto`` and ``none`` do not."""
        for name, why in REFUSED.items():
            value, called = getattr(self, name), getattr(self, _CALLS.get(name, name))
            if value and value not in ("auto", "none") and called != "none":
                raise FieldError(name, why)

    def form(self) -> Form | None:
        """Return the form that is demanded, if any. Raises FieldError where two fields demand different ones."""
        demanded = (
            self.response_format.form() if self.response_format else None,
            None if self.json_schema is None else Form.of_schema("json_schema", self.json_schema),
            Form("regex", self.regex) if self.regex else None,
        )
        found = [form for form in demanded if form]
        if len(found) > 1:
            raise FieldError(found[1].field, f"{found[0].field} demands a form already; a request has one")
        return found[0] if found else None

    def no_form(self, why: str) -> None:
        """Raise FieldError where a form is demanded of an answer that has its own, as ``why`` says."""
        if (form := self.form()) is not None:
            raise FieldError(form.field, f"{why}; leave the field out")

    @property
    def candidates(self) -> int:
        """The number of answers."""
        return self.n or self.n_cmpl or 1

    def exchange(self, prompt: Prompt, style: Style, chat: tuple[ChatMessage, ...] = (), **shown: Any) -> Exchange:
        """Return the exchange for the gap of a prompt, or for the answer to a chat. Raises FieldError as ``form``.

        ``shown`` are ``diffusing``, ``show`` and ``ready`` of the exchange.
        """
        stop, form = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()), self.form()
        at = len(prompt.before.encode())
        region = Region(
            at,
            at,
            max_tokens=self.limit(long=bool(chat or form)),
            single_line="\n" in stop,
            regex=form.regex if form else "",
            json_schema=form.json_schema if form else "",
        )
        language = _LANGUAGE_COMMENT.match(prompt.before)
        request = InfillRequest(
            prompt.before + prompt.after,
            (region,),
            task=AnswerChat(chat, self.candidates) if chat else FillGaps(self.candidates),
            path=prompt.path,
            language=language[1] if language else "",
            snippets=prompt.snippets,
            options=DecodeOptions(temperature=self.temperature or 0.0, seed=abs(self.seed or self.random_seed or 0)),
        )
        limited = form is None and (self.t_max_predict_ms or 0) > 0  # a beginning would lack its form
        patience_ms = self.t_max_predict_ms if limited else None
        return Exchange(request, style, stop, form, patience_ms, bool(self.stream), **shown)

    def limit(self, *, long: bool = False) -> int:
        """Return the wanted number of tokens by its most exact name, within bounds, which differ for ``long`` ones."""
        default, most = (CHAT_TOKENS, MAX_CHAT_TOKENS) if long else (DEFAULT_TOKENS, MAX_TOKENS)
        given = (self.max_completion_tokens, self.max_tokens, self.n_predict)
        wanted = next((count for count in given if count is not None), -1)
        return default if wanted < 0 else min(wanted, most)


def final_lines(snapshot: Snapshot) -> str:
    """Return the complete lines that are committed from the gap's start on, without their last newline."""
    text, committed = snapshot.fills[0], ""
    for slot in snapshot.slots[0]:
        if slot.state != "committed":
            break
        committed += slot.text
    if snapshot.slots[0]:
        # A character of several tokens is complete only in the fill: from the first difference on, nothing is final.
        text = text[: num_common(committed, text)]
    return text[: max(text.rfind("\n"), 0)]


def _committed(snapshot: Snapshot) -> int:
    return sum(slot.state == "committed" for slot in snapshot.slots[0])


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, str]:
    """Return where the first stop string in ``text`` begins, and which it is; its end and "" without one."""
    found = ((at, stop) for stop in stops if stop and (at := text.find(stop)) >= 0)
    return min(found, default=(len(text), ""))


def without_stop_start(text: str, stops: Sequence[str]) -> str:
    """Return ``text`` without a possible start of a stop string at its end."""
    starts = (size for stop in stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
    return text[: len(text) - max(starts, default=0)]
