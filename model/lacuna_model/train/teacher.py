"""The frozen base side of a training step: exact context keys and values, and the base's own opinion of every slot."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lacuna_model.train.batches import Batch
from lacuna_model.transformer import Transformer


class RecordingStore:
    """Keeps the context rows' keys and values of every layer, in ``dtype``, and shows every row all of them."""

    def __init__(self, num_context: int, dtype: torch.dtype) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []
        self._num_context = num_context
        self._dtype = dtype

    def exchange(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Record and pass on."""
        key, value = key.to(self._dtype), value.to(self._dtype)
        self.layers.append((key[:, :, : self._num_context], value[:, :, : self._num_context]))
        return key, value


@dataclass(frozen=True, slots=True)
class Reading:
    """What the base made of a batch: keys and values per layer [B, G, N, D], states that predict slots [B, S, H]."""

    layers: list[tuple[Tensor, Tensor]]
    slot_hidden: Tensor


def read_batch(base: Transformer, batch: Batch[Tensor], dtype: torch.dtype = torch.float32) -> Reading:
    """Encode the context streams, and behind every gap its true tokens as a branch, in one causal pass.

    The branches see their stream up to the gap; no context row sees a branch. Attention runs in ``dtype``.
    """
    store = RecordingStore(batch.num_context, dtype)
    with torch.no_grad():
        hidden = base.hidden(base.embed(batch.ids), batch.positions, store, visible_rows(batch))
        index = batch.slot_rows[..., None].expand(-1, -1, hidden.shape[-1])
        return Reading(store.layers, hidden.gather(1, index))


def visible_rows(batch: Batch[Tensor]) -> Tensor:
    """What each row of the base's pass sees: bool [B, 1, N + S, N + S]."""
    rows = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    earlier = rows[:, None] >= rows
    same_stream = batch.stream[:, :, None] == batch.stream[:, None]
    own_branch = batch.branch[:, :, None] == batch.branch[:, None]
    in_context = rows < batch.num_context
    before_fork = (rows < batch.fork[:, :, None]) & in_context
    # A row that pads sees itself, for a row that sees nothing has no softmax.
    return (earlier & same_stream & (before_fork | own_branch & ~in_context | (batch.stream < 0)[:, :, None]))[:, None]
