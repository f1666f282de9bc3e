"""The checkpoint of a training, from which it is resumed."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import torch

from lacuna_model.hub import atomic
from lacuna_model.network.devices import HOST
from training.stored.packages import CorpusError


def read(path: Path, keys: Set[str]) -> dict[str, Any] | None:
    """What a checkpoint holds; None without one. Raises CorpusError if it is of another version, without the keys."""
    if not path.exists():
        return None
    kept: dict[str, Any] = torch.load(path, map_location=HOST)
    if missing := keys - kept.keys():
        raise CorpusError(f"{path}: a checkpoint of another version, without {', '.join(sorted(missing))}")
    return kept


def write(path: Path, kept: Mapping[str, Any]) -> None:
    """Replace a checkpoint; an interruption leaves the one before."""
    with atomic.replacing(path) as stream:
        torch.save(dict(kept), stream)
