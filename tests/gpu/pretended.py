"""The pack of a tiny model with random weights."""

from random import Random

import torch
from tests.gpu.packed import About, Pack
from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.network.assembly import fuse
from lacuna_model.network.linear import quantize_rows
from training.feeding import Sample, prompt


def pack() -> Pack:
    """A pack whose texts are a tiny tokenizer's; it is read by one thread, which is fastest for so small a model."""
    torch.set_num_threads(1)
    model, rng = tiny_fim.loaded(), Random(0)
    weights = {}
    for name, one in fuse(tiny.state(model.config, 0), model.config).items():
        if one.ndim == 2:
            weights[name], weights[name + ".scale"] = quantize_rows(one)
        else:
            weights[name] = one
    text = torch.tensor(model.tokenizer.encode(tiny.CODE * 2))
    held = [Sample(prompt(text.tolist(), model.fim, rng)) for _ in range(3)]
    taught = [Sample(one.ids, [5] * len(one.ids)) for one in held]
    made = Pack(
        About(model.config, model.fim),
        weights,
        # Ids that need all of 16 bit; too short a text to be read.
        [text, text.flip(0), torch.tensor([0, (1 << 16) - 1])],
        {"held_out": held, "held_out_1.5B": taught, "train": taught},
        (text[:9], torch.empty(0)),
    )
    base = made.base(torch.device("cpu"), torch.float32)
    made.row = (text[:9], base.read(text[None, :9]).states[0, -1] @ base.head.T)
    return made
