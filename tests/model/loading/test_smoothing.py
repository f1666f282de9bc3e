"""Smoothing does not change a model in float32, and reduces its error in 8 bit."""

import torch
from tests.model import tiny
from torch import Tensor

from lacuna_model.loading.weights import SmoothedLayers
from lacuna_model.network.assembly import State, build_transformer, fuse
from lacuna_model.network.config import ModelConfig

IDS = list(range(3, 103))


def weights(config: ModelConfig, outlier: float) -> State:
    """A model whose norms scale three channels by ``outlier``; the linears after the norms undo that."""
    fused = fuse(tiny.state(config), config)
    for layer in range(config.num_layers):
        for linear, norm in (("qkv", "attn_norm"), ("gate_up", "mlp_norm")):
            fused[f"layers.{layer}.{norm}"][:3] *= outlier
            fused[f"layers.{layer}.{linear}"][:, :3] /= outlier
    return fused


def smoothed(fused: State, config: ModelConfig) -> State:
    """The model with every layer smoothed by its activations over ``IDS``."""
    layers = SmoothedLayers(config, fused["embedding"][torch.tensor([IDS])])
    found = dict(fused)
    for index in range(config.num_layers):
        prefix = f"layers.{index}."
        own = {name.removeprefix(prefix): tensor for name, tensor in fused.items() if name.startswith(prefix)}
        found |= {prefix + name: tensor for name, tensor in layers.smooth(own).items()}
    return found


@torch.inference_mode()
def log_probabilities(fused: State, config: ModelConfig) -> Tensor:
    model = build_transformer(config, fused)
    causal = torch.ones((len(IDS), len(IDS)), dtype=torch.bool).tril()
    hidden = tiny.hidden(model, model.embed(torch.tensor([IDS])).float(), torch.arange(len(IDS)), causal)
    return model.head(hidden[0]).log_softmax(-1)


def test_smoothing_reduces_the_divergence_in_8_bit() -> None:
    fused = weights(tiny.CONFIG, outlier=50.0)
    exact = log_probabilities(fused, tiny.CONFIG)

    def divergence(tensors: State) -> float:
        rows = log_probabilities(tiny.quantized(tensors), tiny.CONFIG)
        return float((exact.exp() * (exact - rows)).sum(-1).mean())

    assert divergence(smoothed(fused, tiny.CONFIG)) < divergence(fused) / 4
