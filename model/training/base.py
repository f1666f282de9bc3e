"""The frozen model in plain torch: real rows without gradients, and rows of masks that attend to them.

Real rows are as they are in the engine. Rows of masks have additions in every linear, whose gradients flow through
these rows alone. Weights come in plain order, which any machine can read, and are made dense.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels.quantised import BLOCK, GROUP, FourBitWeight
from lacuna_model.network.assembly import FUSED
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.devices import HOST
from lacuna_model.network.transformer import Rotations

# The product of rows and the weights of a name; what rows make of each other, of their queries, keys and values.
Linear = Callable[[str, Tensor], Tensor]
Attend = Callable[[Tensor], Tensor]
BLOCKS, SCALE = ".blocks", ".scale"
# Rows whose logits are in memory at once.
HEAD_ROWS = 2048


@dataclass(frozen=True, slots=True)
class Read:
    """P prompts of T places, read: their ``states`` [P, T, H], and by layer ``keys`` and ``values`` [P, G, T, D]."""

    states: Tensor
    keys: list[Tensor]
    values: list[Tensor]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of masks in N groups of R, each of one prompt; those that are not used have the anchor -1.

    ``prompt`` [N] is the group's; a row is ``slot`` [N, R] places behind the place of its ``anchor`` [N, R], from 1 on.
    """

    prompt: Tensor
    anchor: Tensor
    slot: Tensor

    @property
    def used(self) -> Tensor:
        """Which rows are used [N, R]."""
        return self.anchor >= 0

    def positions(self) -> Tensor:
        """The rotary positions [N, R]."""
        return (self.anchor + self.slot).clamp_min(0)

    def visible(self, places: int) -> Tensor:
        """What each row attends to [N, R, places + R]: the prompt up to its anchor, and its anchor's rows up to itself.

        Rows that are not used see the prompt's first token, since kernels want a key for every row early on.
        """
        real = torch.arange(places, device=self.anchor.device) <= self.anchor[..., None].clamp_min(0)
        same = self.anchor[..., None] == self.anchor[:, None]
        own = same & (self.slot[:, None] <= self.slot[..., None])
        return torch.cat((real, own), dim=-1)


class Base:
    """A model's weights, dense and frozen, by the names of fused tensors; its head may be cut."""

    def __init__(self, config: ModelConfig, tensors: Mapping[str, Tensor]) -> None:
        self.config = config
        self.head, self.embedding, self._final_norm = (tensors[name] for name in ("head", "embedding", "final_norm"))
        self._layers = [
            {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
            for prefix in (f"layers.{index}." for index in range(config.num_layers))
        ]
        self.device, self.dtype = self.head.device, self.head.dtype
        rotations = Rotations(config, self.device)
        # The turned half of a pair has the other sign.
        signs = torch.ones(config.head_dim, device=self.device)
        signs[: config.head_dim // 2] = -1
        self._cos, self._sin = rotations.cos, rotations.sin * signs

    @torch.no_grad()
    def read(self, ids: Tensor) -> Read:
        """Read prompts ``ids`` [P, T]; what fills them up at their ends is seen by no token of theirs."""
        turned, keys, values = (
            self._turns(torch.arange(ids.shape[1], device=ids.device)),
            list[Tensor](),
            list[Tensor](),
        )

        def attend(states: Tensor) -> Tensor:
            query, key, value = self._projected(states, turned)
            keys.append(key)
            values.append(value)
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
            return mixed.transpose(1, 2).flatten(2)

        x = self.embedding[ids].float()
        for layer in self._layers:
            x = self._through(layer, x, partial(_linear, layer), attend)
        return Read(self._normed(self._final_norm, x), keys, values)

    def denoised(self, masks: Tensor, additions: Mapping[str, Tensor], rows: Rows, read: Read) -> Tensor:
        """The final states [N, R, H] of rows of masks, of which ``masks`` [slots - 1, H] are the inputs.

        ``additions`` are those of :func:`lacuna_model.loading.rows_file.additions`.
        """
        x = F.embedding((rows.slot - 1).clamp_min(0).flatten(), masks).to(self.dtype)
        return self._added_to(x, additions, rows, read)

    def followed(self, ids: Tensor, additions: Mapping[str, Tensor], rows: Rows, read: Read) -> Tensor:
        """The final states [N, R, H] of rows of tokens ``ids`` [N, R] that have the additions, each behind the last."""
        return self._added_to(self.embedding[ids.flatten()].float(), additions, rows, read)

    def _added_to(self, x: Tensor, additions: Mapping[str, Tensor], rows: Rows, read: Read) -> Tensor:
        """The final states [N, R, H] of rows with the inputs ``x`` [N * R, H]."""
        turned = self._turns(rows.positions())
        groups, heads = self.config.num_kv_heads, self.config.num_heads
        # The queries that share a key are the rows of one head, so that keys are not repeated.
        visible = rows.visible(read.states.shape[1]).repeat(1, heads // groups, 1)[:, None]
        mask = torch.zeros(visible.shape, dtype=self.dtype, device=visible.device).masked_fill_(~visible, -torch.inf)
        for index, layer in enumerate(self._layers):

            def linear(name: str, x: Tensor, index: int = index, layer: Mapping[str, Tensor] = layer) -> Tensor:
                low, high = (additions[f"layers.{index}.{name}.{part}"].to(self.dtype) for part in ("low", "high"))
                return _linear(layer, name, x).addmm_(F.linear(x, low), high.T)

            def attend(states: Tensor, index: int = index) -> Tensor:
                query, key, value = self._projected(states.view(*rows.anchor.shape, -1), turned)
                keys = torch.cat((read.keys[index][rows.prompt], key), dim=2)
                values = torch.cat((read.values[index][rows.prompt], value), dim=2)
                query = query.reshape(len(query), groups, -1, query.shape[-1])
                mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
                return mixed.reshape(len(query), heads, -1, query.shape[-1]).transpose(1, 2).reshape(len(states), -1)

            x = self._through(layer, x, linear, attend)
        return self._normed(self._final_norm, x).view(*rows.anchor.shape, -1)

    def likeliest(self, states: Tensor) -> Tensor:
        """The likeliest tokens [N] of states [N, H]."""
        return torch.cat([F.linear(part, self.head).argmax(-1) for part in torch.split(states, HEAD_ROWS)])

    def _through(self, layer: Mapping[str, Tensor], x: Tensor, linear: Linear, attend: Attend) -> Tensor:
        """What a layer makes of rows ``x``."""
        x = x + linear("output", attend(linear("qkv", self._normed(layer["attn_norm"], x))))
        gate, up = linear("gate_up", self._normed(layer["mlp_norm"], x)).chunk(2, dim=-1)
        return x + linear("down", F.silu(gate) * up)

    def _normed(self, weight: Tensor, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weight.to(x.dtype), self.config.rms_norm_eps).to(self.dtype)

    def _turns(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines for positions [..., R], to broadcast over heads [..., 1, R, D]."""
        return self._cos[positions].unsqueeze(-3), self._sin[positions].unsqueeze(-3)

    def _projected(self, states: Tensor, turned: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Query [B, H, R, D], key and value [B, G, R, D] of the stacked outputs [B, R, ...]."""
        heads, groups = self.config.num_heads, self.config.num_kv_heads
        cos, sin = turned
        both, value = (
            states.view(*states.shape[:-1], -1, self.config.head_dim)
            .transpose(1, 2)
            .split_with_sizes((heads + groups, groups), 1)
        )
        both = both.float()
        both = torch.addcmul(both * cos, both.roll(self.config.head_dim // 2, -1), sin)
        query, key = both.to(self.dtype).split_with_sizes((heads, groups), 1)
        return query, key, value


def _linear(layer: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    return F.linear(x, layer[name], layer.get(name + ".bias"))


class PlainOrder:
    """Weights in the order of their outputs and inputs, which any machine can read."""

    def packed(self, codes: Tensor) -> Tensor:
        """The codes themselves."""
        return codes

    def packed_blocks(self, weight: FourBitWeight) -> Tensor:
        """Of each output its codes, two to a byte, its scales, minima, steps and lifts, the last two in float16."""
        low, high = weight.codes[:, ::2], weight.codes[:, 1::2]
        factors = (part.half().view(torch.uint8) for part in (weight.step, weight.lift))
        return torch.cat((low | high << 4, weight.scale, weight.minimum, *factors), dim=1)


def unpacked(blocks: Tensor, width: int) -> FourBitWeight:
    """The 4-bit weight of :meth:`PlainOrder.packed_blocks` with so many inputs."""
    groups, num_blocks = width // GROUP, -(-width // BLOCK)
    pairs, scale, minimum, step, lift = blocks.split_with_sizes(
        (width // 2, groups, groups, 2 * num_blocks, 2 * num_blocks), 1
    )
    codes = torch.stack((pairs & 15, pairs >> 4), dim=-1).flatten(1)
    return FourBitWeight(
        codes, scale, minimum, *(part.contiguous().view(torch.float16).float() for part in (step, lift))
    )


def precision(device: torch.device) -> torch.dtype:
    """The precision of the frozen weights: bfloat16 where the device, or the processor, multiplies it fast."""
    fast = device != HOST or torch.cpu.get_capabilities().get("amx_bf16", False)
    return torch.bfloat16 if fast else torch.float32


def dense(
    tensors: Mapping[str, Tensor], config: ModelConfig, device: torch.device, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Tensors in plain order with every linear dense, on a device; the embedding may be the head."""
    linears = [f"layers.{index}.{name}" for index in range(config.num_layers) for name in FUSED]
    found = {}
    tables = ("head", "embedding") if "embedding" in tensors else ("head",)
    for name in (*tables, *linears):
        found[name] = _dense(tensors, name, device).to(dtype)
        if (bias := tensors.get(name + ".bias")) is not None:
            found[name + ".bias"] = bias.to(device, dtype)
    found.setdefault("embedding", found["head"])
    norms = [f"layers.{index}.{name}" for index in range(config.num_layers) for name in ("attn_norm", "mlp_norm")]
    return found | {name: tensors[name].to(device).float() for name in (*norms, "final_norm")}


def _dense(tensors: Mapping[str, Tensor], name: str, device: torch.device) -> Tensor:
    codes = tensors[name].to(device)
    parts = [codes.float() * tensors[name + SCALE].to(device).float()[:, None]] if name + SCALE in tensors else [codes]
    if (blocks := tensors.get(name + BLOCKS)) is not None:
        parts.insert(0, unpacked(blocks.to(device), codes.shape[1]).dense())
    return torch.cat([part.float() for part in parts])
