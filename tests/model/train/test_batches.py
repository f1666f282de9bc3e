import random
from pathlib import Path

import numpy as np

from lacuna_model.train.batches import MASKED, NOTHING, VISIBLE, Array, Batch, collate
from lacuna_model.train.masks import Copies, draw_copies
from lacuna_model.train.samples import Sample

from .train_tiny import SAMPLES, TOKENIZER, source


def same(one: Batch[Array], other: Batch[Array]) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Batch.__slots__)


def pairs(folder: Path, count: int) -> list[tuple[Sample, Copies]]:
    drawing = source(folder)
    samples = [drawing.sample(i, random.Random(i)) for i in range(count)]
    return [(one, draw_copies(one, SAMPLES, TOKENIZER.vocab_size, random.Random(1))) for one in samples]


def test_a_number_and_a_seed_determine_a_batch(tmp_path: Path) -> None:
    first, second, other = (source(tmp_path, seed=seed) for seed in (0, 0, 1))
    first.draw(0)
    assert same(first.draw(5), second.draw(5))
    assert not same(first.draw(5), first.draw(6))
    assert not same(first.draw(5), other.draw(5))


def test_every_batch_has_the_same_shapes(tmp_path: Path) -> None:
    drawing = source(tmp_path)
    shapes = {tuple(getattr(batch, name).shape for name in Batch.__slots__) for batch in map(drawing.draw, range(20))}
    assert len(shapes) == 1
    assert drawing.draw(0).num_context == SAMPLES.context


def test_documents_too_short_for_a_gap_are_passed_over(tmp_path: Path) -> None:
    drawing = source(tmp_path, texts=("", "", "def total(values):\n    return values\n"))
    assert drawing.draw(0).stream.max() >= 1


def test_rows_say_what_the_sample_says(tmp_path: Path) -> None:
    for sample, copies in pairs(tmp_path, 30):
        batch = collate([(sample, copies)], SAMPLES, shift=True)
        rows = [np.flatnonzero(batch.copy[0] == number) for number in range(len(copies.masks))]
        for number, own in enumerate(rows):
            kinds, slots = batch.kind[0, own], batch.slot[0, own]
            predicting = kinds != NOTHING
            assert sorted(slots[predicting]) == [*range(sample.targets.size)]
            assert np.array_equal(sample.targets.flat[slots[predicting]], batch.target[0, own][predicting])
            masked = copies.masks[number] & sample.real
            assert np.array_equal(np.sort(slots[kinds == MASKED]), np.flatnonzero(masked))
            visible = ~copies.masks[number] & sample.real
            assert np.array_equal(np.sort(slots[kinds == VISIBLE]), np.flatnonzero(visible))
            # Every gap has an anchor and its slots, at consecutive positions; the anchor is the token in front.
            blocks = own.reshape(len(sample.targets), -1)
            for gap, block in zip(sample.layout.gaps, blocks, strict=True):
                stream = {"before": sample.layout.before, "after": sample.layout.after}[gap.parent]
                assert batch.canvas_ids[0, block[0]] == stream.ids[gap.parent_len - 1]
                assert list(batch.canvas_positions[0, block]) == [
                    *range(gap.position - 1, gap.position + len(block) - 1)
                ]
            first = own[np.isin(own, batch.frontier[0])]
            assert np.array_equal(batch.slot[0, first] % masked.shape[1], masked.argmax(1))
            assert np.array_equal(batch.slot[0, first] // masked.shape[1], np.arange(len(masked)))


def test_without_shift_a_row_predicts_its_own_slot(tmp_path: Path) -> None:
    for sample, copies in pairs(tmp_path, 10):
        batch = collate([(sample, copies)], SAMPLES, shift=False)
        own = batch.copy[0] == 0
        assert np.array_equal(batch.canvas_ids[0, own], copies.ids[0].ravel())
        assert np.array_equal(batch.target[0, own], sample.targets.ravel())
        assert np.array_equal(batch.masked[0, own], copies.masks[0].ravel())
