"""What a pass says of a block of slots, row by row, with other rows in place of some."""

from collections.abc import Sequence

import torch
from torch import Tensor


def said_of(rows: Tensor, tokens: Sequence[int]) -> Tensor:
    """What rows [N, V] of log-probabilities say of N tokens [N]."""
    return rows.gather(1, torch.tensor(tokens, device=rows.device)[:, None])[:, 0]


class Rows:
    """Log-probabilities [B, V]: those ``read``, which stay as they are, and ``changed`` ones in place of some."""

    def __init__(self, read: Tensor) -> None:
        self.read = read
        self.changed: dict[int, Tensor] = {}

    def __getitem__(self, slot: int) -> Tensor:
        """The row [V] of a slot, to look at."""
        return self.changed.get(slot, self.read[slot])

    def __setitem__(self, slot: int, row: Tensor) -> None:
        """Have ``row`` [V] stand in place of a slot's."""
        self.changed[slot] = row

    def own(self, slot: int) -> Tensor:
        """The row [V] of a slot, to be changed in place."""
        if slot not in self.changed:
            self.changed[slot] = self.read[slot].clone()
        return self.changed[slot]
