"""What a region demands of its fill besides the syntax of the file: lines, words, a regular expression, a JSON schema.

Patterns and schemas are automata over bytes, through llguidance: derivative-based matching takes time linear in the
text whatever the pattern, so that no client's pattern can hang the server. It also knows which bytes may come next, so
that a completion can be found, and which of a model's own tokens, so that the model chooses among all that the rule
allows, with its probabilities given that rule.
"""

import json
import re
import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import llguidance
import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.core.stopping import LineLimit
from lacuna_model.tokenizer import Tokenizer

# A longer pattern or schema is refused: one of a few megabytes takes seconds to compile, for which others wait.
MAX_CHARACTERS = 100_000
# So much of a pattern is quoted in what is said about it, and so much of what llguidance says, which quotes it again.
QUOTED, SAID = 80, 240
MAX_COMPLETION = 400
# Bytes that tend to end a construct come first; bytes that open new choices come last.
PREFERENCE = tuple(b'"}])0:,x1a{[(-tfn') + tuple(range(33, 127)) + (32, 10)


@cache
def _bytes() -> llguidance.LLTokenizer:
    """A tokenizer whose tokens are the 256 bytes."""
    return llguidance.LLTokenizer("byte")


class ByteGrammar:
    """A compiled grammar that whole fills must match; raises ``RequestError`` if it cannot be compiled."""

    def __init__(self, grammar: str, what: str) -> None:
        self._matcher = llguidance.LLMatcher(_bytes(), grammar, log_level=0)
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


WORD, HALF_WORD = re.compile(rb"[\w\x80-\xff]"), re.compile(rb"[\w\x80-\xff]\Z")


class RegionRules:
    """The rules of one region; ``after`` is the text that follows it."""

    def __init__(self, region: Region, after: bytes) -> None:
        self.least_tokens = region.min_tokens
        self._after = after
        self._limit = LineLimit.of(region, after)
        self._wanted = tuple(word.encode() for word in region.must_contain)
        self._banned = tuple(word.encode() for word in region.must_not_contain)
        given = (regex_grammar, region.regex), (json_schema_grammar, region.json_schema)
        self._grammars = [grammar(rule) for grammar, rule in given if rule]

    def is_followed_by(self, text: bytes) -> bool:
        """Whether the suffix begins with a text that is not blank."""
        return bool(text.strip()) and self._after.startswith(text)

    @property
    def ends_line(self) -> bool:
        """Whether the suffix begins with a line end, so that a fill of whole lines needs none of its own."""
        return self._after[:1] in (b"\n", b"\r")

    def parts_words(self, fill: bytes, end: int) -> bool:
        """Whether a fill that is cut to its first ``end`` bytes neither cuts a word nor ends in one that goes on."""
        return not HALF_WORD.search(fill[:end]) or not (WORD.match(fill[end:]) or WORD.match(self._after))

    def cut(self, fill: bytes) -> bytes:
        """Return the fill without the lines beyond the limit; what the model writes there is ignored."""
        return self._limit.cut(fill) if self._limit else fill

    def accepts(self, fill: bytes) -> bool:
        """Whether a complete fill (already cut) keeps every rule."""
        return (
            all(word in fill for word in self._wanted)
            and not any(word in fill for word in self._banned)
            and all(grammar.matches(fill) for grammar in self._grammars)
        )

    def goes_on(self, fill: bytes) -> bool:
        """Whether the beginning of a fill can be continued so that it keeps every rule."""
        return not any(word in fill for word in self._banned) and all(one.begins(fill) for one in self._grammars)

    def completions(self, fill: bytes) -> Iterator[bytes]:
        """Yield texts to append to the beginning of a fill so that the rules hold; none where no rule requires text."""
        if self._grammars:
            ending = self._grammars[0].completion(fill)
            if ending is not None:
                yield ending
        missing = [word for word in self._wanted if word not in fill]
        if missing:
            yield b" ".join(missing)
            yield b"(" + b", ".join(missing) + b")"


def in_line(regions: Sequence[Region]) -> bool:
    """Whether each region takes only one line."""
    return all(region.single_line or region.max_lines == 1 for region in regions)


_prepared: "weakref.WeakKeyDictionary[Tokenizer, llguidance.LLTokenizer]" = weakref.WeakKeyDictionary()


class RuledTokens:
    """The masks of a fill that repeats a healed ``prefix`` and then keeps the rule of a region."""

    def __init__(self, region: Region, prefix: bytes, tokenizer: Tokenizer) -> None:
        grammar = _grammar(region, prefix.decode(errors="ignore"))
        self._matcher = llguidance.LLMatcher(_over(tokenizer), grammar, log_level=0)

    def after(self, written: Sequence[int]) -> NDArray[np.int64] | None:
        """The tokens that may follow those ``written``, the end-of-gap among them if the rule holds.

        None if the rule does not tell: after a text that does not keep it.
        """
        matcher = self._matcher.deep_copy()
        if matcher.is_error() or matcher.try_consume_tokens(list(written)) != len(written):
            return None
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")
        return np.flatnonzero(bits)


def allowed_tokens(region: Region, prefix: bytes, tokenizer: Tokenizer) -> RuledTokens | None:
    """The masks of a region, after the healed ``prefix`` of its gap; None if nothing but text may stand in it."""
    return RuledTokens(region, prefix, tokenizer) if region.regex or region.json_schema else None


def _grammar(region: Region, prefix: str) -> str:
    if region.regex:
        return str(llguidance.LLMatcher.grammar_from_regex(f"{re.escape(prefix)}(?:{bare_regex(region.regex)})"))
    begin = json.dumps(prefix) if prefix else ""
    return f"start: {begin} fill\nfill: %json {region.json_schema}"


class _Tokens:
    """The tokens of a model, as llguidance asks for them; they keep no tokenizer alive, by which they are cached."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = weakref.proxy(tokenizer)
        self.eos_token_id = tokenizer.eog_id
        self.special_token_ids = sorted({*tokenizer.vocabulary.special_ids, tokenizer.eog_id})
        names = tokenizer.vocabulary.tokens
        self.tokens = [tokenizer.token_bytes(token) or names[token].encode() for token in range(len(names))]

    def __call__(self, text: bytes | str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text.decode(errors="ignore") if isinstance(text, bytes) else text)
        return ids


def _over(tokenizer: Tokenizer) -> llguidance.LLTokenizer:
    """The tokens for llguidance: made once for a model, in half a second for 150,000 tokens."""
    if tokenizer not in _prepared:
        _prepared[tokenizer] = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Tokens(tokenizer)), slices=[])
    return _prepared[tokenizer]
