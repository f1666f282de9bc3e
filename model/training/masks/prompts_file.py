"""A file of prompts with a model's likeliest token after each of theirs: what mask rows are trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from lacuna_model.hub import atomic
from training.stored.packages import CorpusError


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
