"""Fits additions to rows of tokens: steps of the optimizer over answers, and how many held-out answers are right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_model.loading.rows_file import RowsConfig
from training.masks.base import Base, Rows
from training.masks.fitting import HEAD_ROWS, RANK, RATE, Trainable
from training.rows.samples import RowSample


class Measured(msgspec.Struct):
    """Held-out answers: how many, how many of them are right to the end, and the loss of a learnt token (nats).

    ``begun`` of those with something to write are begun, and ``silent`` of those with ``nothing`` are silent.
    """

    answers: int = 0
    right: int = 0
    nothing: int = 0
    silent: int = 0
    begun: int = 0
    loss: float = 0.0

    def line(self) -> str:
        """One line about it."""
        some = self.answers - self.nothing
        return (
            f"{self.right} of {self.answers} answers right, {self.begun} of {some} begun, "
            f"{self.silent} of {self.nothing} silent, loss {self.loss:.3f}"
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """P samples of at most R rows: the contexts' ``ids`` [P, T], and of each row its token ``own``, the ``wanted`` next
    one and its ``weight`` [P, R].
    """

    ids: Tensor
    rows: Rows
    own: Tensor
    wanted: Tensor
    weight: Tensor


class RowsFit(Trainable):
    """Fits one kind of additions."""

    def __init__(self, base: Base, kind: str, *, rank: int = RANK, rate: float = RATE, seed: int = 0) -> None:
        config = base.config
        super().__init__(base, RowsConfig(config.hidden_size, config.num_layers, 1, rank, kind), rate, seed)

    def step(self, samples: Sequence[RowSample], done: float) -> float:
        """Train on some samples; ``done`` is the share of the training that has passed. Returns the mean loss."""
        batch = self._batch(samples)
        hidden = self._base.followed(batch.own, self.tensors, batch.rows, self._base.read(batch.ids))
        with torch.no_grad():
            gradient, loss = self._scored(hidden.detach(), batch)
        self._update(hidden, gradient, done)
        return float(loss)

    @torch.no_grad()
    def measure(self, batches: Iterable[Sequence[RowSample]]) -> Measured:
        """What becomes of held-out answers: one is right where each of its tokens is the likeliest."""
        found, losses = Measured(), 0.0
        for samples in batches:
            batch = self._batch(samples)
            hidden = self._base.followed(batch.own, self.tensors, batch.rows, self._base.read(batch.ids))
            said = self._likeliest(hidden)
            losses += float(self._scored(hidden, batch)[1]) * len(samples)
            for index, one in enumerate(samples):
                begin, end = one.answer - one.first - 1, len(one.ids) - one.first - 1
                held = said[index, begin:end] == batch.wanted[index, begin:end]
                found.answers += 1
                found.right += bool(held.all())
                is_end = int(said[index, begin]) == one.ids[-1]
                found.nothing += one.is_nothing
                found.silent += one.is_nothing and is_end
                found.begun += not one.is_nothing and not is_end
        found.loss = losses / max(found.answers, 1)
        return found

    def _batch(self, samples: Sequence[RowSample]) -> _Batch:
        device = self._base.device
        places = max(one.first for one in samples)
        most = -(-max(len(one.ids) - one.first - 1 for one in samples) // 8) * 8
        ids = torch.zeros((len(samples), places), dtype=torch.long)
        own, wanted, slot = (torch.zeros((len(samples), most), dtype=torch.long) for _ in range(3))
        anchor, weight = torch.full_like(own, -1), torch.zeros(own.shape)
        for index, one in enumerate(samples):
            ids[index, : one.first] = torch.tensor(one.ids[: one.first])
            behind = torch.tensor(one.ids[one.first :])
            count = len(behind) - 1
            own[index, :count], wanted[index, :count] = behind[:-1], behind[1:]
            anchor[index, :count] = one.first - 1
            slot[index, :count] = torch.arange(1, count + 1)
            learnt = torch.tensor(one.weights)
            # Whether something is to do counts alike in all samples, and as much as what it is.
            learnt[1:] /= learnt[1:].sum().clamp_min(1e-6)
            weight[index, one.answer - one.first - 1 : count] = learnt
        weight /= weight.sum()
        rows = Rows(torch.arange(len(samples)).to(device), anchor.to(device), slot.to(device))
        return _Batch(ids.to(device), rows, own.to(device), wanted.to(device), weight.to(device))

    def _scored(self, hidden: Tensor, batch: _Batch) -> tuple[Tensor, Tensor]:
        """The gradient of the mean loss by the states ``hidden`` [P, R, H], and that loss."""
        head, flat = self._base.head, hidden.flatten(0, 1)
        wanted, weight = batch.wanted.flatten(), batch.weight.flatten()
        gradient, loss = torch.zeros_like(flat), torch.zeros((), device=flat.device)
        for rows in torch.split(weight.nonzero()[:, 0], HEAD_ROWS):
            apart = F.linear(flat[rows], head).float().softmax(-1)
            said = apart.gather(1, wanted[rows, None])
            loss += -(said[:, 0].clamp_min(1e-20).log() * weight[rows]).sum()
            apart.scatter_add_(1, wanted[rows, None], torch.full_like(said, -1.0))
            gradient[rows] = ((apart * weight[rows, None]).to(head.dtype) @ head).to(flat.dtype)
        return gradient.view_as(hidden), loss

    def _likeliest(self, hidden: Tensor) -> Tensor:
        parts = torch.split(hidden.flatten(0, 1), HEAD_ROWS)
        return torch.cat([F.linear(part, self._base.head).argmax(-1) for part in parts]).view(hidden.shape[:2])
