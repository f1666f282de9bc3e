"""The drafter: continues the base's hidden state over the next few tokens, at a few percent of the cost of a pass.

One step takes a hidden state of the base after its final norm, and the token that was chosen from it. It predicts the
next hidden state, and with the base's own head the next token. Steps can be chained: each continues from the state that
the one before predicted (the recurrence of EAGLE, arXiv 2401.15077, without its attention). The head is cut down to the
tokens that code uses most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_model.network.linear import Linear


class DrafterConfig(msgspec.Struct, frozen=True):
    """The sizes of a drafter: of the base's hidden states, of the blocks' inner layers, and the number of blocks."""

    hidden_size: int
    inner_size: int
    num_blocks: int = 2
    eps: float = 1e-6


@dataclass(frozen=True, slots=True)
class Block:
    """A gated feed-forward block: ``gate_up`` [2F, H] and ``down`` [H, F]."""

    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class Drafter:
    """The parts of a drafter; ``vocabulary`` [W] has the ids of the tokens that ``head`` [W, H] knows."""

    config: DrafterConfig
    join: Linear
    blocks: Sequence[Block]
    norm: Tensor
    embed: Linear
    head: Linear
    vocabulary: Tensor

    def step(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """The predicted hidden states [N, H] after ``tokens`` [N], which were chosen from ``hidden`` [N, H]."""
        x = hidden + self.join(torch.cat((self._normed(hidden), self._normed(self.embed(tokens))), dim=-1))
        for block in self.blocks:
            gate, up = block.gate_up(self._normed(x)).chunk(2, dim=-1)
            x = x + block.down(F.silu(gate) * up)
        return self._normed(x) * self.norm

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [N, W] of predicted hidden states [N, H] over the drafter's ``vocabulary``."""
        return self.head(hidden)

    def _normed(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], eps=self.config.eps)


def linears(config: DrafterConfig) -> dict[str, tuple[int, int]]:
    """The name and shape [out, in] of every linear that is trained."""
    hidden, inner = config.hidden_size, config.inner_size
    shapes = {"join": (hidden, 2 * hidden)}
    for index in range(config.num_blocks):
        shapes |= {f"blocks.{index}.gate_up": (2 * inner, hidden), f"blocks.{index}.down": (hidden, inner)}
    return shapes


def assembled(
    config: DrafterConfig, linear: Mapping[str, Linear], norm: Tensor, embed: Linear, head: Linear, vocabulary: Tensor
) -> Drafter:
    """A drafter from its linears by name (:func:`linears`), its ``norm`` [H], and the base's embedding and head."""
    blocks = [Block(linear[f"blocks.{i}.gate_up"], linear[f"blocks.{i}.down"]) for i in range(config.num_blocks)]
    return Drafter(config, linear["join"], blocks, norm, embed, head, vocabulary)
