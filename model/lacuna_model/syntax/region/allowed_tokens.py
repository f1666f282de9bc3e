"""Which tokens may come next in a region with a regular expression or a JSON schema: llguidance's masks.

The masks are over the model's own tokens, and exact: the model chooses among all tokens that the rule allows, and its
probabilities are those given that rule.
"""

import json
import re
import weakref
from collections.abc import Sequence

import llguidance
import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.params import Region
from lacuna_model.syntax.region.byte_grammar import bare_regex
from lacuna_model.tokens.tokenizer import Tokenizer

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
