"""What mask rows learn from: code in fill-in-the-middle form as the base reads it, and the base's next tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.tokens.tokenizer import FimTokens, Tokenizer
from training.examples.prompts import LEAST_TOKENS, format_tokens, prompt

HEAD_ROWS = 64


@dataclass(frozen=True, slots=True)
class Examples:
    """One prompt of T tokens: ``tokens`` [T], the base's ``hidden`` states [T, H], and its ``greedy`` tokens [T].

    ``greedy[t]`` is the token that the base finds likeliest after ``tokens[: t + 1]``. ``ordinary`` [T] is False for
    the tokens of the prompt's format.
    """

    tokens: Tensor
    hidden: Tensor
    greedy: Tensor
    ordinary: Tensor


@torch.inference_mode()
def read(model: LoadedFim, ids: Sequence[int]) -> Examples:
    """Reads a prompt with the base."""
    reader = TrackReader(model.layers, model.cache_dtype)
    track = reader.new()
    track.become(ids, 0)
    pieces = []
    while track.unread:
        pieces.append(reader.read([[track]], model.pieces.rows)[track])
    hidden = torch.cat(pieces)
    greedy = torch.cat([reader.logits(rows).argmax(-1) for rows in torch.split(hidden, HEAD_ROWS)])
    own = torch.tensor(format_tokens(model.fim), device=hidden.device)
    tokens = torch.tensor(ids, device=hidden.device)
    return Examples(tokens, hidden.bfloat16(), greedy, ~torch.isin(tokens, own))


def prompts(tokenizer: Tokenizer, fim: FimTokens, source: Iterator[str], seed: int) -> Iterator[list[int]]:
    """Yields the tokens of prompts of texts, without end."""
    rng = Random(seed)
    for text in source:
        tokens = tokenizer.encode(text)
        if len(tokens) > LEAST_TOKENS:
            yield prompt(tokens, fim, rng)


def examples(model: LoadedFim, source: Iterator[str], seed: int) -> Iterator[Examples]:
    """Yields prompts of texts, read by the base, without end."""
    return (read(model, ids) for ids in prompts(model.tokenizer, model.fim, source, seed))
