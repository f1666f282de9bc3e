"""A client's question, whatever the shape of its body: one gap or chat, the limits and the form of the answer."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lacuna_model.core.params import (
    MAX_CANDIDATES,
    AnswerChat,
    ChatMessage,
    DecodeOptions,
    FillGaps,
    InfillRequest,
    Region,
    Snippet,
)
from lacuna_server.wire.protocol import ErrorCode, ServiceError

MAX_STOPS = 256

# Clients write -1 for "no limit".
Count = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Candidates = Annotated[int, Meta(ge=1, le=MAX_CANDIDATES)]
Temperature = Annotated[float, Meta(ge=0, le=10)]
Seed = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]  # the absolute value fits in 64 bits
Milliseconds = Annotated[float, Meta(ge=-1e9, le=1e9)]  # as llama.cpp has it, 0 and less is no limit
# llama.cpp and vLLM take several prompts at once, so some clients send a list of one.
PromptText = str | list[str]
Stops = str | Annotated[list[str], Meta(max_length=MAX_STOPS)]


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
_ANY_OBJECT = {"type": "object"}


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
        field = "response_format"
        schema = self.schema if self.json_schema is None or self.json_schema.schema is None else self.json_schema.schema
        match self.type:
            case "text":
                return None
            case "json_object":
                return Form.of_schema(field, _ANY_OBJECT if schema is None else schema)
            case "json_schema":
                if schema is None:
                    raise FieldError(field, "json_schema.schema is missing")
                return Form.of_schema(field, schema)
        raise FieldError(field, f"{self.type[:40]!r} is none of text, json_object and json_schema")


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
# Words by which these demand nothing.
NEUTRAL = ("auto", "none")


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


@dataclass(frozen=True, slots=True)
class Question:
    """The engine's request for one gap or chat, and what of its answer is decided here.

    A fill ends before the first of the ``stop`` strings and has the ``form``. ``patience_ms`` is llama.cpp's time limit
    (None: no limit): it counts from the first step, and ends a fill only once the fill has a complete line.
    """

    request: InfillRequest
    stop: tuple[str, ...] = ()
    form: Form | None = None
    patience_ms: float | None = None

    @property
    def limit(self) -> int:
        """The most tokens that a fill may have.

        Clients send 0 to have their ring of chunks cached. Here this gains nothing, because other files are encoded
        separately, and it would drop the open document from the cache.
        """
        return self.request.regions[0].max_tokens

    @property
    def ends_whole(self) -> bool:
        """Whether only the end tells the answer: the best of several candidates, or one with a form."""
        return self.request.candidates > 1 or self.form is not None

    @property
    def ends_early(self) -> bool:
        """Whether an answer may be known before the fill ends: by its time, or by stop strings of several lines."""
        return self.patience_ms is not None or any(stop != "\n" for stop in self.stop)


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
        """Raise FieldError for the first field of REFUSED that demands something."""
        for name, why in REFUSED.items():
            value, called = getattr(self, name), getattr(self, _CALLS.get(name, name))
            if value and value not in NEUTRAL and called != "none":
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

    def question(self, prompt: Prompt, chat: tuple[ChatMessage, ...] = ()) -> Question:
        """Return the question for the gap of a prompt, or for the answer to a chat. Raises FieldError as ``form``."""
        stop, form = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()), self.form()
        candidates, at = self.n or self.n_cmpl or 1, len(prompt.before.encode())
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
            task=AnswerChat(chat, candidates) if chat else FillGaps(candidates),
            path=prompt.path,
            language=language[1] if language else "",
            snippets=prompt.snippets,
            options=DecodeOptions(temperature=self.temperature or 0.0, seed=abs(self.seed or self.random_seed or 0)),
        )
        limited = form is None and (self.t_max_predict_ms or 0) > 0  # a beginning would lack its form
        return Question(request, stop, form, self.t_max_predict_ms if limited else None)

    def limit(self, *, long: bool = False) -> int:
        """Return the wanted number of tokens by its most exact name, within bounds, which differ for ``long`` ones."""
        default, most = (CHAT_TOKENS, MAX_CHAT_TOKENS) if long else (DEFAULT_TOKENS, MAX_TOKENS)
        given = (self.max_completion_tokens, self.max_tokens, self.n_predict)
        wanted = next((count for count in given if count is not None), -1)
        return default if wanted < 0 else min(wanted, most)
