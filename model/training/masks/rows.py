"""Which rows of masks are trained: only those that a draft would reach, and as many as fill whole groups."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from training.masks.base import Rows

# Rows of a group: its prompt's keys are read once for all of them. A multiple of 8 for the kernels of attention.
GROUP_ROWS = 64
# Rows of a prompt for each of its tokens, at most.
MAX_ROWS = 2


@dataclass(frozen=True, slots=True)
class Prompts:
    """P prompts of at most T tokens: ``ids`` and the base's or a teacher's ``greedy`` [P, T] token after each.

    ``ordinary`` [P, T] are the tokens of the text, not of the format and not behind the end; ``fill`` [P] is the place
    of the token that begins the fill, which is a place to draft from. They are ``taught`` where a teacher said them.
    """

    ids: Tensor
    greedy: Tensor
    ordinary: Tensor
    fill: Tensor
    taught: bool = False

    def anchors(self) -> Tensor:
        """Where drafts may begin [P, T]."""
        places = torch.arange(self.ids.shape[1], device=self.ids.device)
        return self.ordinary | (places == self.fill[:, None])

    def reached(self, masks: int, vocabulary: int) -> Tensor:
        """Whether the j-th of ``masks`` rows behind a place is of use [P, T, masks].

        It is where the text goes on with what the model says, j tokens long, and a head of ``vocabulary`` outputs can
        say the next one. All that is said is of use; what follows other words is never drafted.
        """
        sayable = self.greedy < vocabulary
        agrees = torch.zeros_like(self.ordinary)
        agrees[:, :-1] = (self.ids[:, 1:] == self.greedy[:, :-1]) & self.ordinary[:, 1:]
        agrees &= sayable
        run = F.pad(agrees, (0, masks - 1)).unfold(1, masks, 1).long().cumprod(-1).bool()
        following = F.pad(sayable, (0, masks)).unfold(1, masks, 1)[:, 1:]
        return run & following & self.anchors()[..., None]


def chosen(prompts: Prompts, masks: int, vocabulary: int, groups: int, generator: torch.Generator) -> Rows:
    """``groups`` groups of rows that are reached, those of the fill first; of a place all rows, or none.

    The fullest groups are taken. Nothing waits for the device.
    """
    reached = prompts.reached(masks, vocabulary)
    count = reached.sum(-1)
    num_prompts, places = count.shape
    drawn = torch.rand(count.shape, generator=generator, device=count.device)
    before = torch.arange(places, device=count.device) < prompts.fill[:, None]
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


def asked(reached: Tensor) -> Iterator[Rows]:
    """All rows that are ``reached`` [P, T, masks], for measuring; a group has those of one anchor."""
    count = reached.sum(-1)
    for rows in range(1, reached.shape[-1] + 1):
        prompt, place = (count == rows).nonzero().unbind(1)
        if not len(place):
            continue
        slot = torch.arange(1, rows + 1, device=place.device)
        yield Rows(prompt, place[:, None].expand(-1, rows), slot.expand(len(place), rows))


def targets(prompts: Prompts, rows: Rows) -> Tensor:
    """The place whose next token each row predicts, that of the prompt [N, R]; 0 for rows that are not used."""
    last = prompts.ids.shape[1] - 1
    return torch.where(rows.used, (rows.anchor + rows.slot).clamp(0, last), 0)
