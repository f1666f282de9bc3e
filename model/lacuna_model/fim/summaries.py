"""What is kept of a pass: of each row of logits the likeliest tokens, and their log-probabilities.

A summary is the same wherever it is made: in a recorded graph, or after the pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuna_kernels import unmask
from lacuna_model.decode.sampling import NUM_CANDIDATES, RULED_OUT

# Of n rows [n, 2 C], in float32: see `Digests.rows`.
Summaries = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class EndRule:
    """What may come after a row's tokens: no end where it is too ``early``.

    ``narrow`` rules out further tokens in the row [V] of logits, where few rows need that.
    """

    early: bool = False
    narrow: Callable[[Tensor], object] | None = None


@dataclass(frozen=True)
class Digests:
    """The summaries of a model whose tokens ``ends`` all end a gap as ``eog_id`` does; other ``specials`` are no text.

    Those that have the same tokens are equal: a recorded graph serves them all.
    """

    eog_id: int
    ends: tuple[int, ...]
    specials: tuple[int, ...]
    device: torch.device
    width: int = 2 * NUM_CANDIDATES
    _ends: Tensor = field(init=False, repr=False, compare=False)
    _specials: Tensor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, ids in (("_ends", self.ends), ("_specials", self.specials)):
            object.__setattr__(self, name, torch.tensor(ids, dtype=torch.long, device=self.device))

    def restricted(self, logits: Tensor, early: Tensor | None = None) -> Tensor:
        """The logits [n, V], changed in place: all end tokens summed as end-of-gap, other special tokens ruled out.

        The end is ruled out, too, in the rows that are ``early``, bool [n].
        """
        ends = logits[:, self._ends].logsumexp(-1)
        logits.index_fill_(1, self._specials, RULED_OUT)
        logits[:, self.eog_id] = ends if early is None else ends.masked_fill_(early, RULED_OUT)
        return logits

    def rows(self, logits: Tensor) -> Tensor:
        """Of each row [n, 2 C]: C candidates, best first, and their log-probabilities.

        Token ids are exact in float32 up to 16.7 million.
        """
        ids, logp = unmask(logits, NUM_CANDIDATES)
        return torch.cat((ids.float(), logp), dim=1)


def best(rows: Summaries) -> list[int]:
    """The likeliest token of each row."""
    found: list[int] = rows[:, 0].astype(np.int64).tolist()
    return found


def parted(rows: Summaries) -> Sequence[np.ndarray[Any, Any]]:
    """Candidates [n, C] and log-probabilities [n, C] of summaries."""
    ids, logp = np.split(rows, 2, axis=1)
    return ids.astype(np.int64), logp
