"""Fields of other services that the bodies of this one do not name: which are refused, and which change nothing.

A body names the fields that its shape honours. Another field is refused by its name, in every shape, where it demands
what the answer would not have. The rest are hints: they tell a model how to find its answer, how fast, or for whom.
"""

from functools import cache
from typing import Any, TypeVar

import msgspec

from lacuna_server.http.shapes.fields import FieldError

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
