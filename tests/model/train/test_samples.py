import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import tiny

from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.samples import Sample, SampleOptions, block_targets, draw_sample, len_context
from lacuna_model.train.shards import TokenDocument

from .train_tiny import document

OPTIONS = SampleOptions(context=160)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab \n"), max_size=80)


def drawn(
    tokenizer: Tokenizer, seed: int, options: SampleOptions = OPTIONS, other: TokenDocument | None = None
) -> Sample:
    sample = draw_sample(document(), other, tokenizer, options, random.Random(seed))
    assert sample is not None
    return sample


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_reproduces(tokenizer: Tokenizer, seed: int) -> None:
    one, other = drawn(tokenizer, seed), drawn(tokenizer, seed)
    assert one.layout == other.layout
    assert np.array_equal(one.targets, other.targets)
    assert np.array_equal(one.num_real, other.num_real)
    assert drawn(tokenizer, seed + 100).layout != one.layout


def test_sizes_are_drawn_from_the_options(tokenizer: Tokenizer) -> None:
    samples = [drawn(tokenizer, seed) for seed in range(200)]
    assert {sample.targets.shape[1] for sample in samples} == set(OPTIONS.block_sizes)
    assert {len(sample.layout.gaps) for sample in samples} == set(range(1, OPTIONS.max_gaps + 1))
    for sample in samples:
        assert sample.targets.size <= OPTIONS.slots
        reserve = sample.layout.after.positions[0] - len(sample.layout.before)
        assert OPTIONS.reserve[0] <= reserve <= OPTIONS.reserve[1]


def test_samples_fill_their_context_and_never_outgrow_it(tokenizer: Tokenizer) -> None:
    other = document("# other\n" + tiny.CODE)
    sizes = [len_context(drawn(tokenizer, seed, other=other if seed % 2 else None).layout) for seed in range(200)]
    assert max(sizes) <= OPTIONS.context
    assert sum(sizes) / len(sizes) > 0.6 * OPTIONS.context


def test_a_snippet_stands_in_front_of_the_text(tokenizer: Tokenizer) -> None:
    other, seen = document("~~~~~~~~\n" * 40), 0
    for seed in range(50):
        text = tokenizer.decode(drawn(tokenizer, seed, other=other).layout.before.ids)
        snippet = text[: text.rfind("~") + 1]
        assert set(snippet) <= {"~", "\n"}
        assert len(tokenizer.encode(snippet)) <= OPTIONS.snippet_context
        seen += bool(snippet)
    assert seen > 25


def test_every_block_has_room_before_the_text_behind_it(tokenizer: Tokenizer) -> None:
    for seed in range(100):
        sample = drawn(tokenizer, seed)
        taken = {*sample.layout.before.positions, *sample.layout.after.positions}
        for gap in sample.layout.gaps:
            own = set(range(gap.position, gap.position + sample.targets.shape[1]))
            assert not own & taken
            taken |= own


def test_targets_are_the_text_that_was_cut_out(tokenizer: Tokenizer) -> None:
    """With blocks that hold everything, context and targets together give the window back."""
    options = SampleOptions(block_sizes=(600,), context=160, slots=4800, rows=9616)
    for seed in range(100):
        sample = drawn(tokenizer, seed, options)
        streams = {"before": sample.layout.before.ids, "after": sample.layout.after.ids}
        starts, text = {"before": 0, "after": 0}, b""
        for gap, targets, real in zip(sample.layout.gaps, sample.targets.tolist(), sample.num_real, strict=True):
            text += tokenizer.decode_bytes(streams[gap.parent][starts[gap.parent] : gap.parent_len])
            starts[gap.parent] = gap.parent_len
            assert targets[int(real) - 1 :] == [tokenizer.eog_id] * (600 - int(real) + 1)
            fill = tokenizer.decode_bytes(targets[: int(real) - 1])
            assert fill.startswith(gap.prefix)
            text += fill
        text += tokenizer.decode_bytes(streams["after"][starts["after"] :])
        assert text.decode() in tiny.CODE
        assert len(text) > 100


def test_targets_tell_the_healed_text_in_the_tokens_of_natural_text(tokenizer: Tokenizer) -> None:
    healed = 0
    for seed in range(100):
        sample = drawn(tokenizer, seed)
        for gap, targets, real in zip(sample.layout.gaps, sample.targets.tolist(), sample.num_real, strict=True):
            text = tokenizer.decode_bytes(targets[: int(real)])
            assert text.startswith(gap.prefix)
            if tokenizer.eog_id in targets:
                assert targets[: int(real) - 1] == tokenizer.encode(text.decode())
            healed += bool(gap.prefix)
    assert healed > 50


@pytest.mark.parametrize(
    ("prefix", "fill", "size", "text", "num_text", "num_real"),
    [
        (b"x", " = 1", 8, "x = 1", 4, 5),
        (b"va", "lue", 4, "value", 1, 2),
        (b"", "", 4, "", 0, 1),
        (b"x", "", 4, "x", 1, 2),
        (b"", "x" * 20, 4, "xxxx", 4, 4),
        (b"", "x" * 4, 4, "xxxx", 4, 4),
        (b"", "x" * 3, 4, "xxx", 3, 4),
        (b"  ", "x", 4, "  x", 2, 3),
    ],
    ids=["healed", "grown", "nothing", "nothing-new", "cut", "full", "end-of-gap-last", "token-kept"],
)
def test_block_targets(
    tokenizer: Tokenizer, prefix: bytes, fill: str, size: int, text: str, num_text: int, num_real: int
) -> None:
    targets, real = block_targets(prefix, fill, tokenizer, size)
    assert (tokenizer.decode(targets), real, len(targets)) == (text, num_real, size)
    assert targets.count(tokenizer.eog_id) == size - num_text


@settings(deadline=None)
@given(TEXTS, st.integers())
def test_any_text_can_be_sampled(tokenizer: Tokenizer, text: str, seed: int) -> None:
    sample = draw_sample(document(text), document(text), tokenizer, OPTIONS, random.Random(seed))
    if sample is not None:
        assert len(sample.targets) == len(sample.num_real) == len(sample.layout.gaps)
        assert (sample.num_real >= 1).all()
        assert (sample.num_real <= sample.targets.shape[1]).all()
        assert len_context(sample.layout) <= OPTIONS.context
