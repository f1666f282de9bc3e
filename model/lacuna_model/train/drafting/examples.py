"""What a drafter learns from: code in fill-in-the-middle form as the base reads it, and the base's next tokens."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.train.stored.documents import read_documents
from lacuna_model.train.stored.packages import CorpusError

LEAST_BYTES, MOST_BYTES = 400, 200_000
PART = 1 / 16
# Tokens of a prompt: its prefix, suffix and fill. Engines read windows of about this size.
PREFIX_TOKENS, SUFFIX_TOKENS, FILL_TOKENS = (32, 384), (0, 160), (16, 128)
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


def texts(corpus: Path, split: str, seed: int) -> Iterator[str]:
    """Yields texts of a corpus's ``split`` without end; raises CorpusError if it has none.

    A language is drawn with the square root of its size, so that no small one is repeated over and over.
    """
    paths = sorted(corpus.glob(f"*/{split}.jsonl.zst"))
    if not paths:
        raise CorpusError(f"{corpus}: no {split} files; `lacuna train corpus` builds the corpus")
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
            if LEAST_BYTES <= len(document.text) <= MOST_BYTES:
                num_usable += 1
                if rng.random() < PART:
                    drawn.append(document.text)
        if not num_usable:
            raise CorpusError(f"{path}: no text of {LEAST_BYTES} to {MOST_BYTES} bytes")
        rng.shuffle(drawn)
        yield from drawn


def prompt(tokens: Sequence[int], model: LoadedFim, rng: Random) -> list[int]:
    """A piece of a text's tokens in fill-in-the-middle form, with a random gap and its fill."""
    fim = model.fim
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


@torch.inference_mode()
def read(model: LoadedFim, ids: Sequence[int]) -> Examples:
    """Reads a prompt with the base."""
    reader = TrackReader(model.transformer, model.cache_dtype)
    track = reader.new()
    track.become(ids, 0)
    pieces = []
    while track.unread:
        pieces.append(reader.read([[track]], model.pieces.rows)[track])
    hidden = torch.cat(pieces)
    greedy = torch.cat([reader.logits(rows).argmax(-1) for rows in torch.split(hidden, HEAD_ROWS)])
    fim = model.fim
    own = torch.tensor([fim.prefix, fim.suffix, fim.middle, *fim.start], device=hidden.device)
    tokens = torch.tensor(ids, device=hidden.device)
    return Examples(tokens, hidden.bfloat16(), greedy, ~torch.isin(tokens, own))


def examples(model: LoadedFim, source: Iterator[str], seed: int) -> Iterator[Examples]:
    """Yields prompts of texts, read by the base, without end."""
    rng = Random(seed)
    for text in source:
        tokens = model.tokenizer.encode(text)
        if len(tokens) > sum(low for low, _ in (PREFIX_TOKENS, FILL_TOKENS)):
            yield read(model, prompt(tokens, model, rng))
