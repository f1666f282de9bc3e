"""Which slots of a canvas are masked, and which visible ones are wrong."""

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lacuna_model.train.samples import Sample, SampleOptions

Slots = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of a sample's canvas: which slots are masked and what stands in the others. [C, G, B] both."""

    masks: Slots
    ids: NDArray[np.int64]


def draw_copies(sample: Sample, options: SampleOptions, vocab_size: int, rng: random.Random) -> Copies:
    """As many copies as ``options.rows`` has room for: pairs of a mask and its complement, and one more if it fits."""
    gaps, size = sample.targets.shape
    count = options.rows // (gaps * (size + 1))
    masks: list[Slots] = []
    while len(masks) < count:
        masks.append(draw_mask(sample, rng))
        if len(masks) < count:
            masks.append(complement(sample, masks[-1]))
    ids = [corrupt(sample, mask, options.corrupted, vocab_size, rng) for mask in masks]
    return Copies(np.stack(masks), np.stack(ids))


def draw_mask(sample: Sample, rng: random.Random) -> Slots:
    """Which slots are masked [G, B]: half of the time all behind a committed start, else scattered.

    The first is what a decoder that commits next to the text meets, the second what out-of-order commits leave.
    Slots behind a visible end-of-gap tell nothing: what stands there is always masked.
    """
    mask = ~sample.real
    size = mask.shape[1]
    for gap, real in enumerate(sample.num_real.tolist()):
        if rng.random() < 0.5:
            mask[gap, rng.randrange(real) :] = True
        else:
            share = rng.random()
            mask[gap] |= [rng.random() < share for _ in range(size)]
            mask[gap, rng.randrange(real)] = True
    return mask


def complement(sample: Sample, mask: Slots) -> Slots:
    """The other real slots, so that every slot is learnt once (as in Fast-dLLM v2).

    A complement that masks nothing real would teach nothing: that gap is masked wholly instead.
    """
    other = ~mask | ~sample.real
    other[~(other & sample.real).any(axis=1)] = True
    return other


def corrupt(sample: Sample, mask: Slots, share: float, vocab_size: int, rng: random.Random) -> NDArray[np.int64]:
    """Canvas ids [G, B] with a share of the visible slots wrong: half random tokens, half tokens from beside."""
    ids = sample.targets.copy()
    for gap, slot in np.argwhere(~mask).tolist():
        if rng.random() < share:
            neighbour = sample.targets[gap, rng.randrange(ids.shape[1])]
            ids[gap, slot] = neighbour if rng.random() < 0.5 else rng.randrange(vocab_size)
    return ids
