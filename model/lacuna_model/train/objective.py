"""The masked-diffusion loss over a batch of canvases."""

from dataclasses import dataclass

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.train.batches import MASKED, Array, Batch
from lacuna_model.train.teacher import Reading, read_batch
from lacuna_model.transformer import Transformer

# Finite, so that the rows of an end-of-gap, which count nothing in the mixture, have a loss and a gradient of numbers.
_RULED_OUT = -1e4


class LossOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the loss: ``visible`` and ``padding`` are per slot, against a masked one.

    ``soft`` is the base's share of the label. ``guided`` is the share of a frontier slot's loss that goes over the
    mixture with the base, as the engine mixes them there: what the base knows already need not be learnt.
    """

    soft: float = 0.0
    guided: float = 0.5
    visible: float = 0.1
    padding: float = 0.05


@dataclass(frozen=True, slots=True)
class Score:
    """What a step saw: the loss in nats, a mean over samples, and sums over slots, both on the device.

    ``sums``: masked, correct, masked_nll, frontier, frontier_nll, base_nll, guided_nll. ``correct`` and ``masked_nll``
    go over the ``masked`` slots, the last three over the ``frontier`` slots (first open ones of their gaps) that are no
    end-of-gap: by the canvas side, by the base, and by their mixture.
    """

    loss: Tensor
    sums: Tensor


def to_device(batch: Batch[Array], device: torch.device) -> Batch[Tensor]:
    """The batch as tensors on ``device``."""
    if device.type == "cpu":
        return batch.map(torch.from_numpy)
    # From pinned memory the copy runs beside the step before it.
    return batch.map(lambda array: torch.from_numpy(array).pin_memory().to(device, non_blocking=True))


class CanvasStore:
    """Shows the recorded context in front of the canvas's own keys and values."""

    def __init__(self, reading: Reading) -> None:
        self._layers = reading.layers

    def exchange(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Context and canvas side by side: [B, G, N + R, D]."""
        context_key, context_value = self._layers[layer]
        return (
            torch.cat((context_key, key.to(context_key.dtype)), dim=2),
            torch.cat((context_value, value.to(context_value.dtype)), dim=2),
        )


def canvas_hidden(model: Transformer, mask_embedding: Tensor, batch: Batch[Tensor], reading: Reading) -> Tensor:
    """The canvas side's states [B, R, H] of all rows of all copies."""
    x = torch.where(batch.masked[..., None], mask_embedding, model.embed(batch.canvas_ids))
    in_context = (batch.stream[:, None, : batch.num_context] >= 0).expand(-1, x.shape[1], -1)
    same_copy = batch.copy[:, :, None] == batch.copy[:, None]
    visible = torch.cat((in_context, same_copy), dim=2)[:, None]
    return model.hidden(x, batch.canvas_positions, CanvasStore(reading), visible)


class Objective:
    """Scores batches: the base reads, the canvas side predicts.

    Attention runs in ``dtype``; ``compiled`` has torch fuse what it can, which costs a minute and pays on a GPU.
    """

    def __init__(
        self,
        base: Transformer,
        canvas: TrainableCanvas,
        options: LossOptions,
        *,
        eog_id: int,
        dtype: torch.dtype = torch.float32,
        compiled: bool = False,
    ) -> None:
        self._base = base.compiled() if compiled else base
        self._canvas = canvas.transformer.compiled() if compiled else canvas.transformer
        self._slot_losses = torch.compile(slot_losses, dynamic=False) if compiled else slot_losses
        self._mask_embedding = canvas.mask_embedding
        self._soft, self._guided = options.soft, options.guided
        # By the kinds of :mod:`lacuna_model.train.batches`: nothing, masked, visible, padding.
        weights = (0.0, 1.0, options.visible, options.padding)
        self._weights = torch.tensor(weights, device=base.final_norm.device)
        self._eog_id = eog_id
        self._dtype = dtype

    def score(self, batch: Batch[Tensor]) -> Score:
        """Loss and sums of a batch; every sample counts the same, whatever the number of its slots."""
        reading = read_batch(self._base, batch, self._dtype)
        logits = self._canvas.head(canvas_hidden(self._canvas, self._mask_embedding, batch, reading))
        with torch.no_grad():
            said = self._base.head(reading.slot_hidden)
        nll, soft, guided, said_nll = self._slot_losses(logits, said, batch.slot, batch.target, self._eog_id)
        # The base knows no end-of-gap, so it has no say on slots that should be one.
        is_text = batch.target != self._eog_id
        label = torch.lerp(nll, soft, self._soft * is_text)
        label = torch.lerp(label, guided, self._guided * (is_text & batch.frontier))
        weight = self._weights[batch.kind]
        loss = ((label * weight).sum(1) / weight.sum(1)).mean()
        with torch.no_grad():
            masked, frontier = batch.kind == MASKED, batch.frontier & is_text
            sums = (
                masked.sum(),
                (masked & (logits.argmax(-1) == batch.target)).sum(),
                (nll * masked).sum(),
                frontier.sum(),
                (nll * frontier).sum(),
                (said_nll * frontier).sum(),
                (guided * frontier).sum(),
            )
            return Score(loss, torch.stack([one.double() for one in sums]))


def slot_losses(
    logits: Tensor, said: Tensor, slot: Tensor, target: Tensor, eog_id: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Per canvas row [B, R]: its target's nll, its cross-entropy against the base's word, the nll of the target in the
    mixture of both, and the base's own.

    ``logits`` [B, R, V] are the canvas side's, ``said`` [B, S, V] the base's on every slot.
    """
    logits = logits.float()
    nll = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view_as(target)
    samples = torch.arange(len(slot), device=slot.device)[:, None]
    spoken = said.float().log_softmax(-1)[samples, slot]
    soft = logits.logsumexp(-1) - (spoken.exp() * logits).sum(-1)
    guided = -mixture(logits, spoken, eog_id).gather(2, target[..., None])[..., 0]
    return nll, soft, guided, -spoken.gather(2, target[..., None])[..., 0]


def mixture(logits: Tensor, said: Tensor, eog_id: int) -> Tensor:
    """The log-probabilities [..., V] of the geometric mean of the canvas side's word and the base's, without an end."""
    is_end = torch.arange(logits.shape[-1], device=logits.device) == eog_id
    return ((logits + said) / 2).masked_fill(is_end, _RULED_OUT).log_softmax(-1)
