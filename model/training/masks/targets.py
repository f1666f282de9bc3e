"""Prompts of the corpus, and files of them with a model's own next tokens: what mask rows that draft for it learn."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.hub import atomic
from lacuna_model.network.devices import choose_threads
from lacuna_model.tokenizer import FimTokens, Tokenizer
from training.feeding import LEAST_TOKENS, Sample, prompt
from training.packages import CorpusError
from training.stored import texts

SAVE_S = 30.0
HEAD_ROWS = 64


def prompts(tokenizer: Tokenizer, fim: FimTokens, source: Iterator[str], seed: int) -> Iterator[list[int]]:
    """Yields the tokens of prompts of texts, without end."""
    rng = Random(seed)
    for text in source:
        tokens = tokenizer.encode(text)
        if len(tokens) > LEAST_TOKENS:
            yield prompt(tokens, fim, rng)


@torch.inference_mode()
def read(model: LoadedFim, ids: Sequence[int]) -> tuple[Tensor, list[int]]:
    """A model's states [T, H] of a prompt, and the token that it finds likeliest after each of the prompt's."""
    reader = TrackReader(model.layers, model.cache_dtype)
    track = reader.new()
    track.become(ids, 0)
    pieces = []
    while track.unread:
        pieces.append(reader.read([[track]], model.pieces.rows)[track])
    hidden = torch.cat(pieces)
    greedy = torch.cat([reader.logits(rows).argmax(-1) for rows in torch.split(hidden, HEAD_ROWS)])
    return hidden, greedy.tolist()


def write(path: Path, samples: Sequence[Sample]) -> None:
    """Write prompts with a model's tokens to a file. Raises OSError."""
    kept = {
        "ids": _joined(one.ids for one in samples),
        "greedy": _joined(one.greedy or () for one in samples),
        "lengths": _joined([[len(one.ids) for one in samples]]),
    }
    with atomic.replacing(path) as stream:
        stream.write(save(kept))


def _joined(parts: Iterable[Sequence[int]]) -> Tensor:
    return torch.tensor(list(chain.from_iterable(parts)), dtype=torch.int32)


def written(path: Path) -> list[Sample]:
    """The prompts in a file; raises CorpusError where it cannot be read."""
    try:
        kept = load(path.read_bytes())
        parts = (kept[name].split_with_sizes(kept["lengths"].tolist()) for name in ("ids", "greedy"))
        return [Sample(ids.tolist(), greedy.tolist()) for ids, greedy in zip(*parts, strict=True)]
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise CorpusError(f"{path}: the prompts cannot be read: {' '.join(str(error).split())}") from error


def make(
    model: LoadedFim,
    corpus: Path,
    out: Path,
    *,
    split: str,
    count: int,
    seed: int = 0,
    threads: int = 0,
    advance: Callable[[int], None] = lambda done: None,
) -> list[Sample]:
    """Read prompts until the file ``out`` has ``count``, going on from those in it; what an end cuts off is small.

    Raises CorpusError where the corpus has no texts or the file is another one.
    """
    torch.set_num_threads(threads or choose_threads())
    found = written(out) if out.exists() else []
    advance(len(found))
    begun = seed + sum(len(one.ids) for one in found)  # other texts than those that were drawn before
    drawn = prompts(model.tokenizer, model.fim, texts(corpus, split, begun), begun)
    saved = time.monotonic()
    while len(found) < count:
        ids = next(drawn)
        found.append(Sample(ids, read(model, ids)[1]))
        advance(1)
        if time.monotonic() - saved > SAVE_S:
            write(out, found)
            saved = time.monotonic()
    write(out, found)
    return found
