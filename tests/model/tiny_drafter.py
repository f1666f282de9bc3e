"""A tiny random drafter for the tiny random model."""

from functools import partial

import torch
from tests.model.fim import tiny_fim

from lacuna_model.fim.drafting.drafter_file import embedded, head_rows
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.network.drafter import Drafter, DrafterConfig, assembled, linears
from lacuna_model.network.linear import DenseLinear

CONFIG = DrafterConfig(tiny_fim.CONFIG.hidden_size, 32)


def tensors(seed: int) -> dict[str, torch.Tensor]:
    """Random weights by name; the vocabulary is every second token, and none of the special ones."""
    generator = torch.Generator().manual_seed(seed)
    found = {name: torch.randn(shape, generator=generator) / shape[1] ** 0.5 for name, shape in linears(CONFIG).items()}
    specials = set(tiny_fim.VOCABULARY.special_ids)
    ordinary = [token for token in range(tiny_fim.CONFIG.vocab_size) if token not in specials]
    return found | {"norm": torch.ones(CONFIG.hidden_size), "vocabulary": torch.tensor(ordinary[::2])}


def random(seed: int, base: LoadedFim | None = None) -> Drafter:
    """The drafter over those weights, for the tiny model unless another one is given."""
    made, network = tensors(seed), (base or tiny_fim.loaded()).transformer
    vocabulary = made["vocabulary"]
    return assembled(
        CONFIG,
        {name: DenseLinear(made[name]) for name in linears(CONFIG)},
        made["norm"],
        partial(embedded, network),
        DenseLinear(head_rows(network, vocabulary)),
        vocabulary,
    )
