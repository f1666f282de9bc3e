"""A client's question, whatever the shape of its body: one gap or chat, the limits and the form of the answer.

``REFUSED`` has the fields by which a body demands what no answer has, ``HINTS`` those that are read over.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeVar

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
Prompt = str | list[str]
Stops = str | Annotated[list[str], Meta(max_length=MAX_STOPS)]


class FieldError(ServiceError):
    """A ``field`` of a request is wrong or cannot be served; the message of one line names it first."""

    def __init__(self, field: str, why: str, code: ErrorCode = "bad_request") -> None:
        super().__init__(code, f"{field}: {why}")
        self.field = field


def only(prompt: Prompt) -> str:
    """Return the one prompt of a request. Raises FieldError where there are several or none."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1:
        raise FieldError("prompt", f"{len(prompt)} of them; a request has one")
    return prompt[0]


# A JSON schema, or the JSON text of one.
Schema = dict[str, Any] | bool | str
Choices = Annotated[list[str], Meta(min_length=1)]

_ANY_OBJECT = '{"type":"object"}'
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")


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

    @classmethod
    def of_choices(cls, field: str, choices: list[str]) -> "Form":
        """Return the form of an answer that is one of some texts."""
        return cls(field, regex=f"(?:{'|'.join(map(_literal, choices))})")


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


class StructuredOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of an answer as vLLM tells it; what is not named here demands a form that no answer has."""

    json: Schema | None = None
    json_object: bool | None = None
    regex: str | None = None
    choice: Choices | None = None


class Forms(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a body that demand a form."""

    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    json_schema: Schema | None = None
    regex: str | None = None
    guided_json: Schema | None = None
    guided_json_object: bool | None = None
    guided_regex: str | None = None
    guided_choice: Choices | None = None

    def form(self) -> Form | None:
        """Return the form that is demanded, if any. Raises FieldError where two fields demand different ones."""
        found = {(form.regex, form.json_schema): form for form in self._forms()}
        if len(found) > 1:
            first, other = list(found.values())[:2]
            raise FieldError(other.field, f"{first.field} demands another form; a request has one")
        return next(iter(found.values()), None)

    def no_form(self, why: str) -> None:
        """Raise FieldError where a form is demanded of an answer that has its own, as ``why`` says."""
        if (form := self.form()) is not None:
            raise FieldError(form.field, f"{why}; leave the field out")

    def _forms(self) -> Iterator[Form]:
        if self.response_format is not None and (form := self.response_format.form()) is not None:
            yield form
        if self.json_schema is not None:
            yield Form.of_schema("json_schema", self.json_schema)
        if self.regex:
            yield Form("regex", self.regex)
        asked = self.structured_outputs or StructuredOutputs()
        yield from _of_vllm(
            "guided_{}", self.guided_json, self.guided_json_object, self.guided_regex, self.guided_choice
        )
        yield from _of_vllm("structured_outputs.{}", asked.json, asked.json_object, asked.regex, asked.choice)


def _of_vllm(
    name: str, schema: Schema | None, any_object: bool | None, regex: str | None, choices: list[str] | None
) -> Iterator[Form]:
    if schema is not None:
        yield Form.of_schema(name.format("json"), schema)
    if any_object:
        yield Form.of_schema(name.format("json_object"), _ANY_OBJECT)
    if regex:
        yield Form(name.format("regex"), regex)
    if choices:
        yield Form.of_choices(name.format("choice"), choices)


def _literal(text: str) -> str:
    """Return a regular expression that matches a text alone."""
    return "".join(f"\\{one}" if one in _SPECIAL else one for one in text)


_NO_GRAMMAR = "an answer follows a JSON schema or a regular expression, as by response_format, and no grammar"
_NO_TOOLS = 'the model answers in words and calls no tool; leave it out, or send tool_choice "none"'
_NO_PROBABILITIES = "the probabilities of tokens are not told"
_NO_TOKENS = "tokens are neither named nor told by their numbers"
_TEXT_ONLY = "the model reads and writes text only"
_OWN_TEMPLATE = "a chat is written down as the model's own template says"

REFUSED: dict[str, str] = {
    "grammar": _NO_GRAMMAR,
    "guided_grammar": _NO_GRAMMAR,
    "ebnf": _NO_GRAMMAR,
    "structural_tag": _NO_GRAMMAR,
    "guided_whitespace_pattern": "the blanks of JSON are the model's own",
    "tools": _NO_TOOLS,
    "functions": _NO_TOOLS,
    "tool_choice": _NO_TOOLS,
    "function_call": _NO_TOOLS,
    "logprobs": _NO_PROBABILITIES,
    "top_logprobs": _NO_PROBABILITIES,
    "prompt_logprobs": _NO_PROBABILITIES,
    "n_probs": _NO_PROBABILITIES,
    "logit_bias": "tokens have no other weights; bad_words keeps words out",
    "allowed_token_ids": _NO_TOKENS,
    "stop_token_ids": _NO_TOKENS,
    "return_tokens": _NO_TOKENS,
    "return_token_ids": _NO_TOKENS,
    "prompt_embeds": _NO_TOKENS,
    "ignore_eos": "a fill ends where the model ends it",
    "include_stop_str_in_output": "a fill ends before its stop string",
    "echo": "only /v1/completions repeats its prompt",
    "diffusing": "only /v1/fim/completions and chats show a whole text again and again",
    "modalities": _TEXT_ONLY,
    "audio": _TEXT_ONLY,
    "image_data": _TEXT_ONLY,
    "images": _TEXT_ONLY,
    "chat_template": _OWN_TEMPLATE,
    "continue_final_message": _OWN_TEMPLATE,
    "safe_prompt": _OWN_TEMPLATE,
    "documents": "the model reads what stands in prompt or messages",
    "web_search_options": "nothing but this machine is asked",
}
# Values, besides null, false, 0 and what is empty, by which a field demands nothing.
NEUTRAL: dict[str, tuple[object, ...]] = {
    "tool_choice": ("auto", "none"),
    "function_call": ("auto", "none"),
    "modalities": (["text"],),
}
# What says that tools are only told of, and none is to be called.
_CALLS = {"tools": "tool_choice", "functions": "function_call"}

HINTS: dict[str, str] = dict.fromkeys(
    (
        *("top_p", "top_k", "min_p", "typical_p", "samplers", "mirostat", "dynatemp_range", "xtc_probability"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty", "repeat_penalty", "dry_multiplier"),
    ),
    "tokens are chosen by temperature and seed alone",
)
HINTS |= dict.fromkeys(
    ("best_of", "use_beam_search", "length_penalty"), "the best fill comes first, however it was found"
)
HINTS |= dict.fromkeys(
    (
        *("cache_prompt", "id_slot", "n_keep", "n_indent", "t_max_prompt_ms", "prediction", "service_tier"),
        *("guided_decoding_backend", "prompt_cache_key", "reasoning_effort", "verbosity"),
    ),
    "a way to an answer, not a part of it",
)
HINTS |= dict.fromkeys(("store", "metadata", "user", "safety_identifier"), "keeps books for the client")
HINTS |= dict.fromkeys(
    ("timings_per_token", "return_progress", "parallel_tool_calls", "chat_template_kwargs"),
    "concerns parts that no answer has",
)
HINTS |= {"model": "one model answers; the answer names it", "lora": "the model is served as it is"}

B = TypeVar("B", bound=msgspec.Struct)
_NOTHING = msgspec.Raw(b"null")
# A longer value asks for something.
_SHORT = 64


@cache
def with_demands(body: type[B]) -> type[B]:
    """Return the type of a body that also keeps the fields that are refused; those that it names are its own."""
    fields = [(name, msgspec.Raw, _NOTHING) for name in REFUSED if name not in body.__struct_fields__]
    made: Any = msgspec.defstruct(body.__name__, fields, bases=(body,), frozen=True, kw_only=True)
    return made  # type: ignore[no-any-return]  # a subclass that only msgspec knows


def check(asked: msgspec.Struct) -> None:
    """Raise FieldError for the first field of REFUSED by which a body of such a type demands something."""
    values = {name: value for name in REFUSED if isinstance(value := getattr(asked, name), msgspec.Raw)}
    for name, value in values.items():
        if _demands(name, value) and not (name in _CALLS and _value(values[_CALLS[name]]) == "none"):
            raise FieldError(name, REFUSED[name])


def _demands(name: str, raw: msgspec.Raw) -> bool:
    value = _value(raw)
    return bool(value) and value not in NEUTRAL.get(name, ())


def _value(raw: msgspec.Raw) -> object:
    """Return a value; of a long one, only that there is one."""
    data = bytes(raw)
    return msgspec.json.decode(data) if len(data) <= _SHORT else True


DEFAULT_TOKENS = Region(0, 0).max_tokens
# The longest fill, whatever a client asks for: clients' defaults of up to 4096 tokens are meant for other models.
MAX_TOKENS = 256
# The answers of a chat, and those that end with their form, by default and at most.
CHAT_TOKENS, MAX_CHAT_TOKENS = 512, 2048

# Some clients name the language in a comment on the first line (minuet: "# language: python").
_LANGUAGE_COMMENT = re.compile(r"\W{0,8}language: ?([\w+#]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A gap between ``before`` and ``after``.

    A fill ends before the first of the ``stop`` strings. ``max_tokens`` None means the default. ``patience_ms`` is
    llama.cpp's time limit (None: no limit): it counts from the first step, and ends a fill only once the fill has a
    complete line. With a ``chat`` there is no gap: the fill answers its messages. A fill has the ``form``, and contains
    none of the ``bad_words``.
    """

    before: str
    after: str = ""
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    min_tokens: int = 0
    candidates: int = 1
    temperature: float = 0.0
    seed: int = 0
    patience_ms: float | None = None
    path: str = ""
    language: str = ""
    snippets: tuple[Snippet, ...] = ()
    chat: tuple[ChatMessage, ...] = ()
    form: Form | None = None
    bad_words: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        """The most tokens that a fill may have."""
        if self.chat or self.form:
            return CHAT_TOKENS if self.max_tokens is None else min(self.max_tokens, MAX_CHAT_TOKENS)
        return DEFAULT_TOKENS if self.max_tokens is None else min(self.max_tokens, MAX_TOKENS)

    @property
    def is_warm_up(self) -> bool:
        """Whether the client wants no fill at all.

        Clients send such requests to have their ring of chunks cached. Here this gains nothing, because other files
        are encoded separately, and it would drop the open document from the cache.
        """
        return self.max_tokens == 0

    @property
    def ends_early(self) -> bool:
        """Whether an answer may be known before the fill ends: by its time, or by stop strings of several lines."""
        return self.patience_ms is not None or any(stop != "\n" for stop in self.stop)

    def request(self) -> InfillRequest:
        """Return the engine's request for the question."""
        options = DecodeOptions(temperature=self.temperature, seed=self.seed)
        at = len(self.before.encode())
        region = Region(
            at,
            at,
            max_tokens=self.limit,
            min_tokens=min(self.min_tokens, self.limit),
            single_line="\n" in self.stop,
            regex=self.form.regex if self.form else "",
            json_schema=self.form.json_schema if self.form else "",
            must_not_contain=self.bad_words,
        )
        return InfillRequest(
            self.before + self.after,
            (region,),
            task=AnswerChat(self.chat, self.candidates) if self.chat else FillGaps(self.candidates),
            path=self.path,
            language=self.language or _language_comment(self.before),
            snippets=self.snippets,
            options=options,
        )


def _language_comment(text: str) -> str:
    found = _LANGUAGE_COMMENT.match(text)
    return found[1] if found else ""


class Asked(Forms, frozen=True, kw_only=True):
    """Limits and demands of a request.

    A negative number of tokens means the default, a negative seed any seed. There are at most ``n`` answers, which
    differ. No answer contains one of the ``bad_words``. ``t_max_predict_ms`` is llama.cpp's limit of time.
    """

    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    n_predict: Count | None = None
    min_tokens: Count | None = None
    n: Candidates | None = None
    n_cmpl: Candidates | None = None
    stop: Stops | None = None
    bad_words: Annotated[list[str], Meta(max_length=MAX_STOPS)] | None = None
    temperature: Temperature | None = None
    seed: Seed | None = None
    random_seed: Seed | None = None
    t_max_predict_ms: Milliseconds | None = None
    stream: bool | None = None

    def question(
        self,
        before: str,
        after: str = "",
        *,
        path: str = "",
        snippets: tuple[Snippet, ...] = (),
        chat: tuple[ChatMessage, ...] = (),
    ) -> Question:
        """Return the question for a gap, or for the answer to a chat. Raises FieldError as ``form`` does."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        form = self.form()
        limited = form is None and (self.t_max_predict_ms or 0) > 0  # a beginning would lack its form
        return Question(
            before=before,
            after=after,
            stop=stop,
            max_tokens=self.limit(),
            min_tokens=max(self.min_tokens or 0, 0),
            candidates=self.n or self.n_cmpl or 1,
            temperature=self.temperature or 0.0,
            seed=abs(self.seed or self.random_seed or 0),
            patience_ms=self.t_max_predict_ms if limited else None,
            path=path,
            snippets=snippets,
            chat=chat,
            form=form,
            bad_words=tuple(filter(None, self.bad_words or ())),
        )

    def limit(self) -> int | None:
        """Return the wanted number of tokens by its most exact name; None means the default."""
        given = (self.max_completion_tokens, self.max_tokens, self.n_predict)
        wanted = next((count for count in given if count is not None), -1)
        return wanted if wanted >= 0 else None
