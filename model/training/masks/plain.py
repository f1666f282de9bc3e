"""A model's weights as it drafts with them, in plain order, and dense: mask rows are trained on what they meet."""

from collections.abc import Mapping

import torch
from torch import Tensor

from lacuna_kernels.quantised import BLOCK, GROUP, FourBitWeight
from lacuna_model.network.assembly import FUSED
from lacuna_model.network.config import ModelConfig

BLOCKS, SCALE = ".blocks", ".scale"


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
