"""Prompts with a model's own next tokens after each of theirs, in a file: what mask rows that draft for it learn."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lacuna_model.fim.loading import LoadedFim
from lacuna_model.hub import atomic
from lacuna_model.network.devices import choose_threads
from training.examples import examples, texts
from training.packages import CorpusError

SAVE_S = 30.0


@dataclass(slots=True)
class Prompts:
    """Prompts of T tokens each: their ``ids`` [T], and by place t the ``greedy`` [T] token after ``ids[: t + 1]``."""

    ids: list[Tensor] = field(default_factory=list)
    greedy: list[Tensor] = field(default_factory=list)

    def add(self, ids: Tensor, greedy: Tensor) -> None:
        """Add one prompt."""
        self.ids.append(ids)
        self.greedy.append(greedy)

    @property
    def tokens(self) -> int:
        """The tokens of all prompts."""
        return sum(map(len, self.ids))

    def __len__(self) -> int:
        return len(self.ids)


def write(path: Path, prompts: Prompts) -> None:
    """Write prompts to a file. Raises OSError."""
    kept = {
        "ids": _joined(prompts.ids),
        "greedy": _joined(prompts.greedy),
        "lengths": torch.tensor([len(one) for one in prompts.ids], dtype=torch.int32),
    }
    with atomic.replacing(path) as stream:
        stream.write(save(kept))


def read(path: Path) -> Prompts:
    """The prompts in a file; raises CorpusError where it cannot be read."""
    try:
        kept = load(path.read_bytes())
        lengths = kept["lengths"].tolist()
        return Prompts(list(kept["ids"].split_with_sizes(lengths)), list(kept["greedy"].split_with_sizes(lengths)))
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise CorpusError(f"{path}: the prompts cannot be read: {' '.join(str(error).split())}") from error


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.int() for part in parts]) if parts else torch.empty(0, dtype=torch.int32)


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
    found = read(out) if out.exists() else Prompts()
    advance(len(found))
    begun = seed + found.tokens  # other texts than those that were drawn before
    saved = time.monotonic()
    for one in examples(model, texts(corpus, split, begun), begun):
        if len(found) >= count:
            break
        found.add(one.tokens.cpu(), one.greedy.cpu())
        advance(1)
        if time.monotonic() - saved > SAVE_S:
            write(out, found)
            saved = time.monotonic()
    write(out, found)
    return found
