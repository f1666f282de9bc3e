"""A piece of a text in fill-in-the-middle form, and how many tokens a pass of a model commits; no model is needed."""

import math
from collections.abc import Sequence
from random import Random

from lacuna_model.tokens.tokenizer import FimTokens

# Tokens of a prompt: its prefix, suffix and fill. Engines read windows of about this size.
PREFIX_TOKENS, SUFFIX_TOKENS, FILL_TOKENS = (32, 384), (0, 160), (16, 128)
# A text with fewer tokens gives no prompt.
LEAST_TOKENS = PREFIX_TOKENS[0] + FILL_TOKENS[0]


def prompt(tokens: Sequence[int], fim: FimTokens, rng: Random) -> list[int]:
    """A piece of a text's tokens in fill-in-the-middle form, with a random gap and its fill."""
    before, after, fill = (rng.randint(*sizes) for sizes in (PREFIX_TOKENS, SUFFIX_TOKENS, FILL_TOKENS))
    start = rng.randrange(max(len(tokens) - before - fill, 1))
    gap = start + before
    return [
        *fim.start,
        fim.prefix,
        *tokens[start:gap],
        fim.suffix,
        *tokens[gap + fill : gap + fill + after],
        fim.middle,
        *tokens[gap : gap + fill],
    ]


def format_tokens(fim: FimTokens) -> list[int]:
    """The tokens of a prompt that are of its format, and no text."""
    return [fim.prefix, fim.suffix, fim.middle, *fim.start]


def tokens_a_pass(accepted: Sequence[float]) -> float:
    """The tokens that a pass commits with so many slots drafted: its own, and each draft while all before it hold."""
    return 1.0 + sum(math.prod(accepted[: slot + 1]) for slot in range(len(accepted)))
