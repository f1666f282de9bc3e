"""The command ``targets``: a model's own next tokens over prompts of the corpus, for mask rows that draft for it."""

import time
from collections.abc import Callable
from pathlib import Path

import torch

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.network.devices import choose_threads
from training.examples.reading import examples
from training.examples.texts import texts
from training.masks import prompts_file
from training.masks.prompts_file import Prompts

SAVE_S = 30.0


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
) -> Prompts:
    """Read prompts until the file ``out`` has ``count``, going on from those in it; what an end cuts off is small.

    Raises CorpusError where the corpus has no texts or the file is another one.
    """
    torch.set_num_threads(threads or choose_threads())
    found = prompts_file.read(out) if out.exists() else Prompts()
    advance(len(found))
    begun = seed + found.tokens  # other texts than those that were drawn before
    saved = time.monotonic()
    for one in examples(model, texts(corpus, split, begun), begun):
        if len(found) >= count:
            break
        found.add(one.tokens.cpu(), one.greedy.cpu())
        advance(1)
        if time.monotonic() - saved > SAVE_S:
            prompts_file.write(out, found)
            saved = time.monotonic()
    prompts_file.write(out, found)
    return found
