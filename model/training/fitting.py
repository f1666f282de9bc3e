"""Fits mask rows to what the base says: which rows are trained, the steps, and the acceptance of drafts.

What a GPU machine runs (this, `base`, `feeding`, `loop`) reads neither models nor the corpus, and needs none of the
packages for that.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading.rows_file import RowsConfig, additions, dense, stored
from training.base import HEAD_ROWS, Base, Read, Rows
from training.feeding import Batch

# Rows of a group: its prompt's keys are read once for all of them. A multiple of 8 for the kernels of attention.
GROUP_ROWS = 64
# Rows of a prompt for each of its tokens, at most.
MAX_ROWS = 2
SLOTS, RANK = 8, 32
# The weight of each further mask's row, beside that of the one before: earlier slots decide whether later ones count.
FADING = 0.9
# The share of the base's whole distribution, beside its likeliest token, in what is learnt.
SOFT = 0.5
RATE, WARM_UP, LAST_RATE = 1e-3, 0.03, 0.05
BETAS = (0.9, 0.98)
# The spread of the first masks around the mean of all embeddings, as a share of their spread.
NOISE = 0.1
# More than any vocabulary has: what a cut head cannot say counts as wrong where drafts are measured.
ALL_TOKENS = 1 << 40
# Anchors that are measured at once.
ASKED_GROUPS = 512


def chosen(count: Tensor, masks: int, fill: Tensor, groups: int, generator: torch.Generator) -> Rows:
    """``groups`` groups of rows, ``count`` [P, T] of each place, at most ``masks``, or none; of the ``fill`` [P] first.

    The fullest groups are taken. Nothing waits for the device.
    """
    num_prompts, places = count.shape
    drawn = torch.rand(count.shape, generator=generator, device=count.device)
    before = torch.arange(places, device=count.device) < fill[:, None]
    order = (drawn + before).argsort(dim=1)
    sizes = count.gather(1, order)
    ends = sizes.cumsum(1)
    starts = ends - sizes
    most = -(-MAX_ROWS * places // GROUP_ROWS) * GROUP_ROWS
    kept = (sizes > 0) & (starts // GROUP_ROWS == (ends - 1) // GROUP_ROWS) & (ends <= most)
    # One more column takes what is not kept.
    anchor = torch.full((num_prompts, most + 1), -1, device=count.device)
    slot = torch.zeros_like(anchor)
    for j in range(1, masks + 1):
        column = torch.where(kept & (sizes >= j), starts + j - 1, most)
        anchor.scatter_(1, column, order)
        slot.scatter_(1, column, j)
    anchor, slot = (part[:, :most].reshape(-1, GROUP_ROWS) for part in (anchor, slot))
    fullest = (anchor >= 0).sum(1).topk(min(groups, len(anchor))).indices
    return Rows(fullest // (most // GROUP_ROWS), anchor[fullest], slot[fullest])


class Trainable:
    """The trained tensors, in float32, and their optimizer, over a frozen base."""

    def __init__(self, base: Base, config: RowsConfig, rate: float, seed: int) -> None:
        self.config = config
        self._base, self._rate, self.device = base, rate, base.device
        self._masks = config.slots - 1
        self._generator = torch.Generator(base.device).manual_seed(seed)
        self.tensors = {name: one.requires_grad_() for name, one in self._initial().items()}
        self._optimizer = torch.optim.AdamW(
            self.tensors.values(), lr=rate, betas=BETAS, weight_decay=0.0, fused=base.device.type == "cuda"
        )

    def _update(self, hidden: Tensor, gradient: Tensor, done: float) -> None:
        """One step by the ``gradient`` of the states ``hidden``, at the share ``done`` of the training."""
        self._optimizer.zero_grad()
        hidden.backward(gradient)  # type: ignore[no-untyped-call]  # untyped in torch
        torch.nn.utils.clip_grad_norm_(self.tensors.values(), 1.0)
        rate = self._rate * min(1.0, done / WARM_UP + 0.01)
        rate *= LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * min(done, 1.0))) / 2
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()

    @torch.no_grad()
    def _gradient(
        self,
        hidden: Tensor,
        wanted: Tensor,
        weight: Tensor,
        parts: Iterable[Tensor | slice],
        soft: float = 0.0,
        states: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The gradient of the loss by the states ``hidden`` [N, R, H], and the loss, where rows say ``wanted`` [N * R].

        Each row has a ``weight`` [N * R]; ``parts`` are those that have one, some at once. A share ``soft`` of what is
        learnt is what the base says at its own ``states`` [N * R, H].
        """
        head, flat = self._base.head, hidden.flatten(0, 1)
        gradient, loss = torch.zeros_like(flat), torch.zeros((), device=flat.device)
        for rows in parts:
            apart = F.linear(flat[rows], head).float().softmax(-1)
            said = apart.gather(1, wanted[rows, None])
            loss += -(said[:, 0].clamp_min(1e-20).log() * weight[rows]).sum()
            if states is not None:
                apart.sub_(F.linear(states[rows], head).float().softmax(-1), alpha=soft)
            apart.scatter_add_(1, wanted[rows, None], torch.full_like(said, soft - 1))
            gradient[rows] = ((apart * weight[rows, None]).to(head.dtype) @ head).to(flat.dtype)
        return gradient.view_as(hidden), loss

    def kept(self) -> tuple[RowsConfig, dict[str, Tensor]]:
        """The sizes and the tensors of the file that the engine loads."""
        return self.config, self.tensors_now()

    def tensors_now(self) -> dict[str, Tensor]:
        """The trained tensors by name, without their gradients."""
        return {name: one.detach() for name, one in self.tensors.items()}

    def state(self) -> dict[str, Any]:
        """What a training goes on from."""
        return {"tensors": self.tensors_now(), "optimizer": self._optimizer.state_dict()}

    @torch.no_grad()
    def go_on(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`state` gave."""
        for name, one in self.tensors.items():
            one.copy_(state["tensors"][name])
        self._optimizer.load_state_dict(state["optimizer"])

    @torch.no_grad()
    def begin_from(self, path: Path) -> None:
        """Take the mask rows in a file; raises WeightsError where it cannot be read, or has others than these."""
        config, tensors = stored(path, self._base.config)
        if (config.slots, config.rank) != (self.config.slots, self.config.rank):
            raise WeightsError(f"{path} has {config.slots} slots of rank {config.rank}; trained are others")
        for name, one in dense(tensors).items():
            self.tensors[name].copy_(one)

    def _initial(self) -> dict[str, Tensor]:
        """Random ``low``; ``high`` is zero, so that training starts from the base itself."""
        generator, device = self._generator, self._base.device
        found = {}
        if self._masks:
            table = self._base.embedding.float()
            drawn = torch.randn((self._masks, table.shape[1]), generator=generator, device=device)
            found["masks"] = table.mean(0) + NOISE * table.std() * drawn
        for name, shape in additions(self._base.config, self.config.rank).items():
            found[name] = torch.zeros(shape, device=device)
            if name.endswith(".low"):
                found[name].normal_(std=shape[1] ** -0.5, generator=generator)
        return found


class Fit(Trainable):
    """Fits mask rows."""

    def __init__(
        self, base: Base, *, slots: int = SLOTS, rank: int = RANK, rate: float = RATE, soft: float = SOFT, seed: int = 0
    ) -> None:
        config = RowsConfig(base.config.hidden_size, base.config.num_layers, slots, rank)
        super().__init__(base, config, rate, seed)
        self._soft = soft
        self._weights = FADING ** torch.arange(self._masks, device=base.device)

    def step(self, batch: Batch, rows: int, done: float) -> Tensor:
        """Train on about ``rows`` rows of a batch; ``done`` is the share of the training that has passed.

        Returns the mean loss of a row, which is not waited for.
        """
        read, greedy = self._read(batch)
        reached = batch.reached(greedy, self._masks, len(self._base.head))
        trained = chosen(reached.sum(-1), self._masks, batch.fill, max(rows // GROUP_ROWS, 1), self._generator)
        hidden = self._base.denoised(self.tensors["masks"], self.tensors, trained, read)
        soft = 0.0 if batch.greedy is not None else self._soft
        gradient, loss = self._scored(hidden.detach(), trained, greedy, read, soft)
        self._update(hidden, gradient, done)
        return loss

    @torch.no_grad()
    def acceptance(self, batches: Iterable[Batch]) -> list[float]:
        """For every slot, the share of drafts that are right there, of those that were right in all slots before it.

        The first slot is what the base itself says. A slot is asked only while the text is what the batch's teacher,
        or else the base, would have written.
        """
        right, wanted = torch.zeros(2, self._masks + 1, device=self._base.device)
        for batch in batches:
            read, greedy = self._read(batch)
            own = self._base.likeliest(read.states.flatten(0, 1)).view_as(batch.ids)
            reached = batch.reached(greedy, self._masks, ALL_TOKENS)
            drafted = self._drafted(reached, read)
            held = batch.anchors()
            wanted[0] += held.sum()
            held = held & (own == greedy)
            right[0] += held.sum()
            for j in range(self._masks):
                held = held & reached[..., j]
                wanted[j + 1] += held.sum()
                held = held & (drafted[..., j] == greedy.roll(-1 - j, 1))
                right[j + 1] += held.sum()
        accepted: list[float] = (right / wanted.clamp_min(1)).tolist()
        return accepted

    def _read(self, batch: Batch) -> tuple[Read, Tensor]:
        """The prompts as they are read, and the teacher's or else the base's tokens [P, T] after each of theirs."""
        read = self._base.read(batch.ids)
        if batch.greedy is not None:
            return read, batch.greedy
        return read, self._base.likeliest(read.states.flatten(0, 1)).view_as(batch.ids)

    def _scored(self, hidden: Tensor, rows: Rows, greedy: Tensor, read: Read, soft: float) -> tuple[Tensor, Tensor]:
        """The gradient of the mean loss by the states ``hidden`` [N, R, H] of rows, and that loss.

        Each row says the token after its own place, of those that are ``greedy`` [P, T].
        """
        places = torch.where(rows.used, (rows.anchor + rows.slot).clamp(0, greedy.shape[1] - 1), 0)
        prompt = rows.prompt[:, None].expand_as(places)
        # Rows that are not used say any token.
        wanted = greedy[prompt, places].flatten().clamp_max(len(self._base.head) - 1)
        weight = torch.where(rows.used, self._weights[(rows.slot - 1).clamp_min(0)], 0.0).flatten()
        states = read.states[prompt, places].flatten(0, 1) if soft else None
        parts = [slice(first, first + HEAD_ROWS) for first in range(0, len(wanted), HEAD_ROWS)]
        return self._gradient(hidden, wanted, weight / weight.sum().clamp_min(1e-6), parts, soft, states)

    def _drafted(self, reached: Tensor, read: Read) -> Tensor:
        """What the rows say that are ``reached`` [P, T, masks]; -1 for others."""
        found = torch.full(reached.shape, -1, device=reached.device)
        count = reached.sum(-1)
        for rows in range(1, self._masks + 1):
            slot = torch.arange(1, rows + 1, device=reached.device)
            groups = (count == rows).nonzero()
            for some in torch.split(groups, ASKED_GROUPS) if len(groups) else ():
                prompt, place = some.unbind(1)
                asked = Rows(prompt, place[:, None].expand(-1, rows), slot.expand(len(some), rows))
                hidden = self._base.denoised(self.tensors["masks"], self.tensors, asked, read)
                found[prompt, place, :rows] = self._base.likeliest(hidden.flatten(0, 1)).view_as(asked.anchor)
        return found
