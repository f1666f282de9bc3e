"""Regular expressions and JSON schemas as automata over bytes, through llguidance.

Derivative-based matching takes time linear in the text whatever the pattern, so that no client's pattern can hang the
server. It also knows which bytes may come next, so that a completion can be found.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import llguidance

from lacuna_model.core.errors import RequestError

END = 256
# A longer pattern or schema is refused: one of a few megabytes takes seconds to compile, for which others wait.
MAX_CHARACTERS = 100_000
# So much of a pattern is quoted in what is said about it, and so much of what llguidance says, which quotes it again.
QUOTED, SAID = 80, 240
MAX_COMPLETION = 400
# Bytes that tend to end a construct come first; bytes that open new choices come last.
PREFERENCE = tuple(b'"}])0:,x1a{[(-tfn') + tuple(range(33, 127)) + (32, 10)


class _ByteVocabulary:
    """A tokenizer whose tokens are the 256 bytes and an end token."""

    eos_token_id = END
    bos_token_id = None
    tokens: Sequence[bytes] = (*(bytes([value]) for value in range(256)), b"<|end|>")
    special_token_ids: Sequence[int] = (END,)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@lru_cache(maxsize=1)
def _byte_tokenizer() -> llguidance.LLTokenizer:
    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(_ByteVocabulary()), slices=[])


class ByteGrammar:
    """A compiled grammar that whole fills must match; raises ``RequestError`` if it cannot be compiled."""

    def __init__(self, grammar: str, what: str) -> None:
        self._matcher = llguidance.LLMatcher(_byte_tokenizer(), grammar, log_level=0)
        if self._matcher.is_error():
            raise RequestError(f"{what}: {_first_line(self._matcher.get_error())}")

    def matches(self, text: bytes) -> bool:
        """Whether the whole text matches."""
        matcher = self._matcher.deep_copy()
        return matcher.try_consume_tokens(list(text)) == len(text) and matcher.is_accepting()

    def begins(self, text: bytes) -> bool:
        """Whether a match may begin with the text."""
        return self._matcher.deep_copy().try_consume_tokens(list(text)) == len(text)

    def completion(self, text: bytes) -> bytes | None:
        """Return a short text that completes the beginning of a match; None where none is in reach.

        Preferred bytes end strings and lists at once, but would be repeated forever in a loop such as ``[a-z]+_``.
        There the byte used least leads out of the loop.
        """
        return self._complete(text, fair=False) or self._complete(text, fair=True)

    def _complete(self, text: bytes, *, fair: bool) -> bytes | None:
        matcher = self._matcher.deep_copy()
        if matcher.try_consume_tokens(list(text)) != len(text):
            return None
        ending = bytearray()
        while not matcher.is_accepting():
            step = matcher.compute_ff_bytes() or _next_byte(matcher, ending if fair else bytearray())
            if not step or len(ending) > MAX_COMPLETION or not matcher.consume_tokens(list(step)):
                return None
            ending += step
        return bytes(ending)


def _next_byte(matcher: llguidance.LLMatcher, used: bytearray) -> bytes:
    """The allowed byte that was used least so far, the preferred one among equals."""
    mask = matcher.compute_bitmask()
    allowed = [value for value in PREFERENCE if mask[value >> 3] >> (value & 7) & 1]
    return bytes([min(allowed, key=used.count)]) if allowed else b""


def regex_grammar(pattern: str) -> ByteGrammar:
    """Return the grammar of a regular expression; raises ``RequestError`` for look-around and back references."""
    _check_length("regex", pattern)
    shown = pattern if len(pattern) <= QUOTED else f"{pattern[:QUOTED]}…"
    return ByteGrammar(
        llguidance.LLMatcher.grammar_from_regex(bare_regex(pattern)), f"regex {shown!r} is not supported"
    )


def bare_regex(pattern: str) -> str:
    """A regular expression without the anchors of a whole text, which every pattern has to match."""
    bare = pattern.removeprefix("^")
    return bare if bare.endswith("\\$") else bare.removesuffix("$")


def json_schema_grammar(schema: str) -> ByteGrammar:
    """Return the grammar of a JSON schema; raises ``RequestError`` if it is invalid or not supported."""
    _check_length("json_schema", schema)
    try:
        json.loads(schema)
        grammar: Any = llguidance.LLMatcher.grammar_from_json_schema(schema)
    except ValueError as error:
        raise RequestError(f"json_schema is not valid JSON: {_first_line(str(error))}") from error
    except RecursionError as error:
        raise RequestError("json_schema is nested too deeply") from error
    return ByteGrammar(grammar, "json_schema is not supported")


def _check_length(what: str, text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise RequestError(f"{what} has {len(text)} characters; {MAX_CHARACTERS} are allowed")


def _first_line(message: str) -> str:
    line = message.strip().split("\n", 1)[0]
    return line if len(line) <= SAID else f"{line[:SAID]}…"
