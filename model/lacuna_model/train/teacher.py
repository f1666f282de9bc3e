"""The frozen base side of a training step: exact context keys and values, and the base's own opinion of every slot."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lacuna_model.train.samples import Sample
from lacuna_model.transformer import Transformer


class RecordingStore:
    """Keeps the first ``length`` rows' keys and values of every layer while all rows see each other by the mask."""

    def __init__(self, length: int) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []
        self._length = length

    def exchange(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Record and pass on."""
        self.layers.append((key[:, :, : self._length], value[:, :, : self._length]))
        return key, value


@dataclass(frozen=True, slots=True)
class Reading:
    """What the base made of a sample: keys and values per layer [1, G, K, D], hidden states of the slots [G, B, H]."""

    layers: list[tuple[Tensor, Tensor]]
    slot_hidden: Tensor


def read_sample(base: Transformer, sample: Sample) -> Reading:
    """Encode the context streams, and behind every gap its true tokens as a branch, in one causal pass.

    The branches see their stream up to the gap; no context token sees a branch. ``slot_hidden[g, i]`` is the state
    from which the base predicts slot i of gap g.
    """
    layout = sample.layout
    device = base.final_norm.device
    ids = [*layout.before.ids, *layout.after.ids]
    positions = [*layout.before.positions, *layout.after.positions]
    num_before, num_context = len(layout.before), len(ids)
    size = sample.targets.shape[1]
    offsets = []
    for gap, targets in zip(layout.gaps, sample.targets.tolist(), strict=True):
        offsets.append((num_before if gap.parent == "after" else 0, gap.parent_len))
        ids += targets
        positions += range(gap.position, gap.position + size)
    mask = torch.zeros((len(ids), len(ids)), dtype=torch.bool)
    mask[:num_before, :num_before] = True
    mask[num_before:num_context, num_before:num_context] = True
    rows = []
    for index, (start, length) in enumerate(offsets):
        own = slice(num_context + index * size, num_context + (index + 1) * size)
        mask[own, start : start + length] = True
        mask[own, own] = True
        rows.append([start + length - 1, *range(own.start, own.stop - 1)])
    mask = mask.tril().to(device)
    store = RecordingStore(num_context)
    with torch.no_grad():
        x = base.embed(torch.tensor([ids], device=device))
        hidden = base.hidden(x, torch.tensor(positions, device=device), store, mask)
    return Reading(store.layers, hidden[0, torch.tensor(rows, device=device)])
