"""Fits a drafter: its loss, and the acceptance of its drafts."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lacuna_model.network.drafter import Drafter, DrafterConfig, assembled, linears
from lacuna_model.network.linear import Linear
from training.examples.reading import Examples

# Slots drafted in training, and the weight of each slot's loss: the first decides whether the others count.
SLOT_WEIGHTS = (1.0, 0.7, 0.5, 0.35)
# The weight of the distance to the base's next hidden state, beside the loss of the token.
STATE_WEIGHT = 0.5
# Tokens of the vocabulary, drawn at random, that a loss compares with the right ones.
OTHERS = 2048


@dataclass(frozen=True, slots=True)
class Batch:
    """N anchors: ``hidden`` [N, H] at each; then for every slot the token read and the base's next, and its state.

    ``tokens`` and ``greedy`` are [N, S], ``states`` [N, S, H]. ``valid`` [N, S] ends a row at the first token that
    the base would not have written, since a draft after it is never read.
    """

    hidden: Tensor
    tokens: Tensor
    greedy: Tensor
    states: Tensor
    valid: Tensor


class Trainable(nn.Module):
    """The trained linears and norm of a drafter, in float32; ``vocabulary`` [W] and ``head`` [W, H] are frozen.

    All tensors are on one device.
    """

    def __init__(
        self, config: DrafterConfig, norm: Tensor, embedding: Tensor, head: Tensor, vocabulary: Tensor
    ) -> None:
        super().__init__()
        self.config = config
        self.linears = nn.ParameterDict(
            {
                name.replace(".", "_"): nn.Parameter(_initial(name, shape).to(norm.device))
                for name, shape in linears(config).items()
            }
        )
        self.norm = nn.Parameter(norm.float().clone())
        self._embedding, self._head, self._vocabulary = embedding, head, vocabulary
        self._index_of = torch.full((len(embedding),), -1, device=norm.device)  # of token ids in the vocabulary
        self._index_of[vocabulary] = torch.arange(len(vocabulary), device=norm.device)

    @cached_property
    def drafter(self) -> Drafter:
        """The drafter over these weights."""
        made = {name: self._linear(name) for name in linears(self.config)}
        return assembled(self.config, made, self.norm, self._embed, self._score, self._vocabulary)

    @torch.no_grad()
    def begin_from(self, tensors: Mapping[str, Tensor]) -> None:
        """Take the weights of a drafter's file."""
        for name in linears(self.config):
            weight = tensors[name].float() * tensors[name + ".scale"].float()[:, None]
            self.linears[name.replace(".", "_")].copy_(weight)
        self.norm.copy_(tensors["norm"])

    def scored(self, hidden: Tensor, states: Tensor, greedy: Tensor, generator: torch.Generator) -> Tensor:
        """The cross entropy of the base's next token (``states`` [N, H]) and of the drafter's (``hidden`` [N, H]).

        It is taken over a part of the vocabulary: the base's ``greedy`` tokens [N], and others drawn at random, each of
        which stands for its share of the rest (sampled softmax, arXiv 1412.2007).
        """
        targets = self._index_of[greedy]
        known = targets >= 0
        drawn = torch.randint(len(self._vocabulary), (OTHERS,), generator=generator).to(targets.device)
        rows = torch.unique(torch.cat((targets[known], drawn)))
        others = math.log((len(self._vocabulary) - len(rows)) / OTHERS + 1)
        lifted = torch.full((len(rows),), others, device=rows.device)
        lifted[torch.isin(rows, targets)] = 0.0
        head = self._head[rows]
        with torch.no_grad():
            wanted = (F.linear(states[known].to(head.dtype), head).float() + lifted).softmax(-1)
        return F.cross_entropy(F.linear(hidden[known].to(head.dtype), head).float() + lifted, wanted)

    def tensors(self) -> dict[str, Tensor]:
        """The weights by name."""
        found = {name: self.linears[name.replace(".", "_")].detach() for name in linears(self.config)}
        return found | {"norm": self.norm.detach(), "vocabulary": self._vocabulary}

    def _linear(self, name: str) -> Linear:
        weight = self.linears[name.replace(".", "_")]
        return lambda x: F.linear(x, weight)

    def _embed(self, tokens: Tensor) -> Tensor:
        return self._embedding[tokens].float()

    def _score(self, x: Tensor) -> Tensor:
        return F.linear(x, self._head)


def _initial(name: str, shape: tuple[int, int]) -> Tensor:
    """Small random weights; zero where a block adds to the state, so that training starts from the state itself."""
    if name.endswith("down"):
        return torch.zeros(shape)
    return torch.randn(shape) * (1 / math.sqrt(shape[1]))


class Buffer:
    """The anchors of the prompts read last, at most ``capacity`` tokens."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._prompts: deque[Examples] = deque()
        self.tokens = 0

    def add(self, one: Examples) -> None:
        """Add a prompt; the oldest go where there are too many."""
        self._prompts.append(one)
        self.tokens += len(one.tokens)
        while self.tokens > self._capacity:
            self.tokens -= len(self._prompts.popleft().tokens)

    def batch(self, size: int, slots: int, generator: torch.Generator) -> Batch:
        """``size`` random anchors (about: prompts give several each)."""
        chosen = torch.randint(len(self._prompts), (max(size // 64, 1),), generator=generator).tolist()
        return joined([anchors(self._prompts[i], slots, 64, generator) for i in chosen])


def anchors(one: Examples, slots: int, most: int, generator: torch.Generator | None = None) -> Batch:
    """Anchors of a prompt: all, or at most ``most`` at random."""
    last = len(one.tokens) - slots
    places = torch.arange(last) if generator is None else torch.randperm(last, generator=generator)[:most]
    places = places.to(one.tokens.device)
    ahead = places[:, None] + torch.arange(1, slots + 1, device=places.device)
    tokens, greedy = one.tokens[ahead], one.greedy[ahead]
    # The token read in slot s is one that the base would write after the slot before it.
    agrees = tokens == one.greedy[ahead - 1]
    agrees[:, 0] = True
    usable = one.ordinary[ahead] & one.ordinary[places][:, None]
    valid = (agrees & usable).long().cumprod(1).bool()
    return Batch(one.hidden[places], tokens, greedy, one.hidden[ahead], valid)


def joined(parts: Sequence[Batch]) -> Batch:
    """Several batches as one."""
    names = [field.name for field in fields(Batch)]
    return Batch(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


def loss(trained: Trainable, batch: Batch, generator: torch.Generator) -> Tensor:
    """The loss of a batch: of each slot, up to the first that the base would not have written."""
    hidden, total, weight = batch.hidden.float(), torch.zeros((), device=batch.hidden.device), 0.0
    valid = batch.valid
    for slot, slot_weight in enumerate(SLOT_WEIGHTS[: batch.tokens.shape[1]]):
        rows = valid[:, slot]
        # Rows that ended are left out, which keeps later slots cheap.
        hidden, valid = hidden[rows], valid[rows]
        kept = {name: getattr(batch, name)[rows] for name in ("tokens", "greedy", "states")}
        batch = Batch(batch.hidden, **kept, valid=valid)
        if not len(hidden):
            break
        hidden = trained.drafter.step(hidden, batch.tokens[:, slot])
        states = batch.states[:, slot]
        scored = trained.scored(hidden, states, batch.greedy[:, slot], generator)
        apart = F.smooth_l1_loss(hidden.float(), states.float())
        total = total + slot_weight * (scored + STATE_WEIGHT * apart)
        weight += slot_weight
    return total / max(weight, 1e-6)


@torch.no_grad()
def acceptance(drafter: Drafter, prompts: Sequence[Examples], slots: int) -> list[float]:
    """For every slot, the share of drafts that are right there, of those that were right in all slots before it.

    A slot is asked only while the text is what the base would have written.
    """
    device = drafter.vocabulary.device
    right, asked = torch.zeros(slots, device=device), torch.zeros(slots, device=device)
    for one in prompts:
        batch = anchors(one, slots, 0)
        hidden, tokens = batch.hidden.float(), batch.tokens[:, 0]
        held = torch.ones(len(tokens), dtype=torch.bool, device=device)
        for slot in range(slots):
            hidden = drafter.step(hidden, tokens)
            tokens = drafter.vocabulary[drafter.logits(hidden).argmax(-1)]
            held = held & batch.valid[:, slot]
            asked[slot] += held.sum()
            held = held & (tokens == batch.greedy[:, slot])
            right[slot] += held.sum()
    return (right / asked.clamp_min(1)).tolist()
