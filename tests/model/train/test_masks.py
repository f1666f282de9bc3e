import random

import numpy as np
from tests.model.train.test_samples import OPTIONS, drawn

from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.masks import complement, corrupt, draw_copies, draw_mask


def test_masks_always_mask_something_real(tokenizer: Tokenizer) -> None:
    starts = 0
    for seed in range(300):
        sample = drawn(tokenizer, seed)
        mask = draw_mask(sample, random.Random(seed))
        assert mask.shape == sample.targets.shape
        assert (mask & sample.real).any(axis=1).all()
        # What stands behind the end tells nothing and is never shown.
        assert mask[~sample.real].all()
        starts += int(mask.all(axis=1).sum())
    assert starts > 0


def test_complementary_masks_cover_every_real_slot(tokenizer: Tokenizer) -> None:
    for seed in range(300):
        sample = drawn(tokenizer, seed)
        mask = draw_mask(sample, random.Random(seed))
        other, real = complement(sample, mask), sample.real
        assert (mask | other)[real].all()
        assert (other & real).any(axis=1).all()
        # No real slot is masked twice, but where the complement of a gap would mask nothing real.
        twice = (mask & other & real).any(axis=1)
        assert np.array_equal(twice, (mask | ~real).all(axis=1))


def test_copies_fill_the_rows_in_pairs(tokenizer: Tokenizer) -> None:
    for seed in range(100):
        sample = drawn(tokenizer, seed)
        copies = draw_copies(sample, OPTIONS, tokenizer.vocab_size, random.Random(seed))
        rows = sample.targets.size + len(sample.targets)
        assert 2 <= len(copies.masks) == len(copies.ids)
        assert len(copies.masks) * rows <= OPTIONS.rows < (len(copies.masks) + 1) * rows
        assert np.array_equal(copies.masks[1], complement(sample, copies.masks[0]))


def test_corruption_touches_a_share_of_the_visible_slots_alone(tokenizer: Tokenizer) -> None:
    visible = changed = 0
    for seed in range(200):
        sample, rng = drawn(tokenizer, seed), random.Random(seed)
        mask = draw_mask(sample, rng)
        ids = corrupt(sample, mask, 0.3, tokenizer.vocab_size, rng)
        assert np.array_equal(ids[mask], sample.targets[mask])
        visible += int((~mask).sum())
        changed += int((ids != sample.targets).sum())
        assert np.array_equal(corrupt(sample, mask, 0.0, tokenizer.vocab_size, rng), sample.targets)
    assert 0.2 < changed / visible <= 0.3
