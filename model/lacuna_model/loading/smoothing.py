"""Moves outliers from the inputs of 8-bit linears into their weights (SmoothQuant, arXiv 2211.10438).

A few channels of a transformer's states are many times larger than all others, so 8 bit leaves the others little
precision. A channel's size can be divided out of the norm before a linear (or of the rows that make its input) and
multiplied into the linear's column. In exact arithmetic the result is the same.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_kernels import attention, fold_mask
from lacuna_model.network.assembly import State, build_layer
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.linear import Linear
from lacuna_model.network.transformer import Rotations, finish, project

# Linears whose input comes from a norm, with the norm's name.
NORMED = (("qkv", "attn_norm"), ("gate_up", "mlp_norm"))
# The share of the channels' differences that moves into the weights; the paper's default.
STRENGTH = 0.5
SMALLEST = 1e-5

Peaks = dict[str, Tensor]


def _smooth_layer(smoothed: dict[str, Tensor], prefix: str, peaks: Peaks) -> None:
    """Move the sizes of one layer's channels, in place."""
    for linear, norm in NORMED:
        smoothed[prefix + norm] = smoothed[prefix + norm] / _absorb(smoothed, prefix + linear, peaks[prefix + linear])
    ratio = _absorb(smoothed, prefix + "down", peaks[prefix + "down"])
    # The input of ``down`` is silu(gate) times ``up``; ``up`` is the second half of the rows.
    divisor = torch.cat((torch.ones_like(ratio), ratio))
    smoothed[prefix + "gate_up"] = smoothed[prefix + "gate_up"] / divisor[:, None]
    if (bias := smoothed.get(prefix + "gate_up.bias")) is not None:
        smoothed[prefix + "gate_up.bias"] = bias / divisor


def _absorb(smoothed: dict[str, Tensor], name: str, peaks: Tensor) -> Tensor:
    """Multiply the columns of linear ``name``, in place; return the factors [in]."""
    weight = smoothed[name]
    ratio = peaks.clamp_min(SMALLEST) ** STRENGTH
    ratio = ratio / weight.abs().amax(0).clamp_min(SMALLEST) ** (1 - STRENGTH)
    ratio = ratio / ratio.log().mean().exp()
    smoothed[name] = weight * ratio
    return ratio


class SmoothedLayers:
    """Smooths a model layer by layer, so that only one layer at a time is in memory in full precision.

    ``states`` [1, R, H] are the next layer's inputs for the calibration text, and in the end those of the final norm.
    """

    def __init__(self, config: ModelConfig, embedded: Tensor) -> None:
        self._config = config
        self.states = embedded
        rows = embedded.shape[1]
        causal = torch.ones((rows, rows), dtype=torch.bool).tril()
        self._mask = fold_mask(causal, config.num_heads // config.num_kv_heads, torch.float32)
        self._cos, self._sin = Rotations(config, embedded.device).at(torch.arange(rows))

    @torch.inference_mode()
    def smooth(self, tensors: State) -> dict[str, Tensor]:
        """The layer of fused ``tensors``, named without its number, with the sizes of its channels moved."""
        peaks: Peaks = {}
        layer = build_layer(self._config, tensors, "", lambda name: _recorded(tensors, name, peaks))
        query, key, value = project(layer, self.states, self._cos, self._sin)
        self.states = finish(layer, self.states, attention(query, key, value, self._mask))
        smoothed = dict(tensors)
        _smooth_layer(smoothed, "", peaks)
        return smoothed


def _recorded(tensors: State, name: str, peaks: Peaks) -> Linear:
    """The linear ``name``, which records the largest magnitude of each of its input channels in ``peaks``."""

    def linear(x: Tensor) -> Tensor:
        peaks[name] = x.abs().flatten(0, -2).amax(0)
        return F.linear(x, tensors[name], tensors.get(name + ".bias"))

    return linear
