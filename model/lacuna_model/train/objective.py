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

# Finite, so that frontier slots that are an end-of-gap, which count nothing here, have a loss of numbers.
_RULED_OUT = -1e4


class LossOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the loss: ``visible`` and ``padding`` are per slot, against a masked one.

    ``guided`` is the share of a frontier slot's loss that goes over the mixture with the base, as the engine mixes them
    there: what the base knows already need not be learnt.
    """

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
        self._row_losses = torch.compile(row_losses, dynamic=False) if compiled else row_losses
        self._mixture_losses = torch.compile(mixture_losses, dynamic=False) if compiled else mixture_losses
        self._mask_embedding = canvas.mask_embedding
        self._guided = options.guided
        # By the kinds of :mod:`lacuna_model.train.batches`: nothing, masked, visible, padding.
        weights = (0.0, 1.0, options.visible, options.padding)
        self._weights = torch.tensor(weights, device=base.final_norm.device)
        self._eog_id = eog_id
        self._dtype = dtype

    def score(self, batch: Batch[Tensor]) -> Score:
        """Loss and sums of a batch; every sample counts the same, whatever the number of its slots."""
        reading = read_batch(self._base, batch, self._dtype)
        hidden = canvas_hidden(self._canvas, self._mask_embedding, batch, reading)
        nll, correct = self._row_losses(self._canvas.head(hidden), batch.target)
        # Few rows are a frontier, and a vocabulary of logits is large: only of those is there a mixture.
        samples, rows = torch.arange(len(nll), device=nll.device)[:, None], batch.frontier.clamp_min(0)
        target = batch.target[samples, rows]
        with torch.no_grad():
            said = self._base.head(reading.slot_hidden[samples, batch.slot[samples, rows]])
        logits = self._canvas.head(hidden[samples, rows])
        guided, said_nll = self._mixture_losses(logits, said, target, self._eog_id)
        # The base knows no end-of-gap, so it has no say on slots that should be one.
        is_text = (batch.frontier >= 0) & (target != self._eog_id)
        own_nll = nll[samples, rows]
        weight = self._weights[batch.kind]
        changed = self._guided * (guided - own_nll) * is_text
        loss = (((nll * weight).sum(1) + changed.sum(1)) / weight.sum(1)).mean()
        with torch.no_grad():
            masked = batch.kind == MASKED
            sums = (
                masked.sum(),
                (masked & correct).sum(),
                (nll * masked).sum(),
                is_text.sum(),
                (own_nll * is_text).sum(),
                (said_nll * is_text).sum(),
                (guided * is_text).sum(),
            )
            return Score(loss, torch.stack([one.double() for one in sums]))


def row_losses(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Per canvas row [B, R] its target's nll, and whether the target is the likeliest, from ``logits`` [B, R, V]."""
    logits = logits.float()
    nll = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view_as(target)
    return nll, logits.detach().argmax(-1) == target


def mixture_losses(logits: Tensor, said: Tensor, target: Tensor, eog_id: int) -> tuple[Tensor, Tensor]:
    """Per row [B, F] its target's nll in the mixture of the canvas side's word and the base's, and the base's own.

    ``logits`` [B, F, V] are the canvas side's, ``said`` [B, F, V] the base's.
    """
    both = mixture(logits.float(), said.float(), eog_id)
    guided, own = (-one.gather(2, target[..., None])[..., 0] for one in (both, said.float().log_softmax(-1)))
    return guided, own


def mixture(logits: Tensor, said: Tensor, eog_id: int) -> Tensor:
    """The log-probabilities [..., V] of the geometric mean of the canvas side's word and the base's, without an end."""
    is_end = torch.arange(logits.shape[-1], device=logits.device) == eog_id
    return ((logits + said) / 2).masked_fill(is_end, _RULED_OUT).log_softmax(-1)
