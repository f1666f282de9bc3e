"""The masked-diffusion loss over a sample's canvases."""

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.train.samples import Sample, SampleOptions, corrupt, draw_mask
from lacuna_model.train.teacher import Reading, read_sample
from lacuna_model.transformer import Transformer


@dataclass(frozen=True, slots=True)
class LossOptions:
    """Weights of the loss: ``soft`` is the base's share of the label, the others are per slot against a masked one."""

    soft: float = 0.5
    visible: float = 0.1
    padding: float = 0.05


@dataclass(frozen=True, slots=True)
class Score:
    """What a step saw: loss in nats, and sums over masked slots and over frontier slots (the first open ones)."""

    loss: Tensor
    masked: int = 0
    correct: int = 0
    masked_nll: float = 0.0
    frontier: int = 0
    frontier_nll: float = 0.0
    base_nll: float = 0.0


class CanvasStore:
    """Shows the recorded context in front of the canvas's own keys and values, for every copy in the batch."""

    def __init__(self, reading: Reading) -> None:
        self._layers = reading.layers

    def exchange(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Context and canvas side by side: [B, G, K + R, D]."""
        context_key, context_value = self._layers[layer]
        batch = key.shape[0]
        return (
            torch.cat((context_key.expand(batch, -1, -1, -1), key), dim=2),
            torch.cat((context_value.expand(batch, -1, -1, -1), value), dim=2),
        )


def canvas_rows(sample: Sample, shift: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """Anchor ids [G] and the positions of all rows [G * (anchor + B)], gap by gap."""
    streams = {"before": sample.layout.before, "after": sample.layout.after}
    anchors = torch.tensor([streams[gap.parent].ids[gap.parent_len - 1] for gap in sample.layout.gaps])
    size = sample.targets.shape[1]
    offsets = torch.arange(-1 if shift else 0, size)
    starts = torch.tensor([gap.position for gap in sample.layout.gaps])
    return anchors.to(device), (starts[:, None] + offsets).flatten().to(device)


def canvas_logits(
    canvas: TrainableCanvas, sample: Sample, reading: Reading, ids: Tensor, mask: Tensor, wanted: Tensor
) -> Tensor:
    """Logits [N, V] of the ``wanted`` slots (bool [C, G, B]) of C copies of the canvas with ``ids`` and ``mask``."""
    model = canvas.transformer
    shift = model.config.shift
    anchors, positions = canvas_rows(sample, shift, ids.device)
    x = torch.where(mask[..., None], canvas.mask_embedding, model.embed(ids))
    copies, gaps, size, width = x.shape
    if shift:
        x = torch.cat((model.embed(anchors).expand(copies, gaps, width).unsqueeze(2), x), dim=2)
    hidden = model.hidden(x.reshape(copies, -1, width), positions, CanvasStore(reading))
    hidden = hidden.view(copies, gaps, -1, width)[:, :, :size]
    logits: Tensor = model.head(hidden[wanted])
    return logits


def complementary_masks(sample: Sample, rng: random.Random) -> Tensor:
    """A mask and its complement over the real slots [2, G, B], as in Fast-dLLM v2: every slot is learnt once."""
    mask = draw_mask(sample, rng)
    other = ~mask
    slots = torch.arange(mask.shape[1])
    other |= slots >= sample.num_real[:, None]
    # A complement that masks nothing real would teach nothing: mask that gap wholly instead.
    empty = ~(other & (slots < sample.num_real[:, None])).any(dim=1)
    other[empty] = True
    return torch.stack((mask, other))


def sample_loss(
    base: Transformer,
    canvas: TrainableCanvas,
    sample: Sample,
    options: LossOptions,
    sampling: SampleOptions,
    eog_id: int,
    rng: random.Random,
) -> Score:
    """Loss and counts of one sample, both complementary copies in one pass."""
    device = base.final_norm.device
    reading = read_sample(base, sample)
    masks = complementary_masks(sample, rng)
    ids = torch.stack([corrupt(sample, mask, sampling.corrupted, base.config.vocab_size, rng) for mask in masks])
    slots = torch.arange(masks.shape[2])
    real = (slots < sample.num_real[:, None]).expand_as(masks)
    weight = torch.where(masks, 1.0, options.visible)
    weight = torch.where(real, weight, options.padding)
    wanted = weight > 0
    logits = canvas_logits(canvas, sample, reading, ids.to(device), masks.to(device), wanted.to(device))
    targets = sample.targets.expand_as(masks)[wanted].to(device)
    nll = F.cross_entropy(logits, targets, reduction="none")
    with torch.no_grad():
        base_logits = base.head(reading.slot_hidden).float().expand(len(masks), -1, -1, -1)[wanted.to(device)]
    is_text = (targets != eog_id).float()
    soft = -(base_logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)
    label = torch.lerp(nll, soft, options.soft * is_text)
    flat_weight = weight[wanted].to(device)
    loss = (label * flat_weight).sum() / flat_weight.sum()
    with torch.no_grad():
        masked = (masks & real)[wanted].to(device)
        frontier = _frontier(masks, real)[wanted].to(device) & (is_text > 0)
        return _score(loss, logits, base_logits, targets, nll, masked, frontier)


def _frontier(masks: Tensor, real: Tensor) -> Tensor:
    """The first masked slot of every gap, where it is real."""
    return masks & real & (masks.cumsum(dim=-1) == 1)


def _score(
    loss: Tensor, logits: Tensor, base_logits: Tensor, targets: Tensor, nll: Tensor, masked: Tensor, frontier: Tensor
) -> Score:
    base_nll = F.cross_entropy(base_logits[frontier], targets[frontier], reduction="sum")
    return Score(
        loss=loss,
        masked=int(masked.sum()),
        correct=int((logits.argmax(-1) == targets)[masked].sum()),
        masked_nll=float(nll[masked].sum()),
        frontier=int(frontier.sum()),
        frontier_nll=float(nll[frontier].sum()),
        base_nll=float(base_nll),
    )
