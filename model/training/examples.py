"""What drafts are trained on: texts of the corpus as prompts, and what a model says after each of their tokens."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.tokenizer import FimTokens, Tokenizer
from training.feeding import LEAST_TOKENS, prompt
from training.packages import CorpusError
from training.stored import read_documents

LEAST_BYTES, MAX_BYTES = 400, 200_000
PART = 1 / 16
HEAD_ROWS = 64


def texts(corpus: Path, split: str, seed: int) -> Iterator[str]:
    """Yields texts of a corpus's ``split`` without end; raises CorpusError if it has none.

    A language is drawn with the square root of its size, so that no small one is repeated over and over.
    """
    paths = sorted(corpus.glob(f"*/{split}.jsonl.zst"))
    if not paths:
        raise CorpusError(f"{corpus}: no {split} files; `python -m training corpus` builds the corpus")
    rng = Random(seed)
    languages = [_shuffled(path, rng) for path in paths]
    weights = [math.sqrt(path.stat().st_size) for path in paths]
    while True:
        (language,) = rng.choices(languages, weights)
        yield next(language)


def _shuffled(path: Path, rng: Random) -> Iterator[str]:
    """Yields the texts of a file again and again: of each pass a random ``PART``, in random order.

    The documents of a package are neighbours in the file, and a short training shall see all packages.
    """
    while True:
        num_usable, drawn = 0, list[str]()
        for document in read_documents(path):
            if LEAST_BYTES <= len(document.text) <= MAX_BYTES:
                num_usable += 1
                if rng.random() < PART:
                    drawn.append(document.text)
        if not num_usable:
            raise CorpusError(f"{path}: no text of {LEAST_BYTES} to {MAX_BYTES} bytes")
        rng.shuffle(drawn)
        yield from drawn


@dataclass(frozen=True, slots=True)
class Examples:
    """One prompt of T tokens: ``tokens`` [T], the base's ``hidden`` states [T, H], and its ``greedy`` tokens [T].

    ``greedy[t]`` is the token that the base finds likeliest after ``tokens[: t + 1]``.
    """

    tokens: Tensor
    hidden: Tensor
    greedy: Tensor


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
    return Examples(torch.tensor(ids, device=hidden.device), hidden.bfloat16(), greedy)


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
