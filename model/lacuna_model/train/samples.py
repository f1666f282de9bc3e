"""Training samples: a stretch of a document, gaps as an editor makes them, and masks over their canvases."""

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from lacuna_model.context import Layout, lay_out
from lacuna_model.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """What samples are drawn with: sizes in characters, tokens and slots.

    A sample's blocks have one of ``block_sizes`` slots, drawn independently of what is to be filled: small blocks
    waste fewer rows on slots behind the end, and the block's length tells nothing of the fill's.
    """

    block_sizes: tuple[int, ...] = (4, 6, 8, 12, 16)
    window_chars: int = 1000
    max_gaps: int = 8
    corrupted: float = 0.1
    reserve: tuple[int, int] = (16, 640)
    hole: tuple[int, int] = (16, 128)


@dataclass(frozen=True, slots=True)
class Sample:
    """A laid-out stretch of text and, per gap, what its block of slots should hold.

    ``targets`` [G, B]: the true tokens, then end-of-gap where the fill ends inside the block.
    ``num_real`` [G]: how many of them count fully; those behind the first end-of-gap are padding.
    """

    layout: Layout
    targets: Tensor
    num_real: Tensor


def draw_sample(text: str, tokenizer: Tokenizer, options: SampleOptions, rng: random.Random) -> Sample | None:
    """A sample from ``text``, or None where the text is too short for a gap."""
    start = rng.randrange(max(1, len(text) - options.window_chars))
    start = text.rfind("\n", 0, start) + 1 if rng.random() < 0.9 else start
    window = text[start : start + options.window_chars]
    spans = draw_spans(window, rng.randint(1, options.max_gaps), rng)
    if not spans:
        return None
    ends = [0, *(end for _, end in spans)]
    starts = [*(begin for begin, _ in spans), len(window)]
    segments = [window[end:begin] for end, begin in zip(ends, starts, strict=True)]
    low, high = options.reserve
    reserve = int(low * (high / low) ** rng.random())
    layout = lay_out(
        segments,
        tokenizer,
        reserve=lambda _: reserve,
        hole=rng.randint(*options.hole),
    )
    fills = [window[begin:end] for begin, end in spans]
    size = rng.choice(options.block_sizes)
    rows = [block_targets(gap.prefix, fill, tokenizer, size) for gap, fill in zip(layout.gaps, fills, strict=True)]
    return Sample(layout, torch.tensor([row for row, _ in rows]), torch.tensor([real for _, real in rows]))


def block_targets(prefix: bytes, fill: str, tokenizer: Tokenizer, block_size: int) -> tuple[list[int], int]:
    """The tokens of a gap's first block, padded with end-of-gap, and how many of them count fully."""
    tokens = tokenizer.encode(prefix.decode() + fill)
    if prefix and not tokenizer.token_bytes(tokens[0]).startswith(prefix):
        tokens = [*tokenizer.encode(prefix.decode()), *tokenizer.encode(fill)]
    real = min(len(tokens) + 1, block_size)
    tokens = tokens[:block_size]
    return tokens + [tokenizer.eog_id] * (block_size - len(tokens)), real


def draw_spans(text: str, count: int, rng: random.Random) -> list[tuple[int, int]]:
    """Up to ``count`` disjoint character spans, in order, at least one character of text between them."""
    spans: list[tuple[int, int]] = []
    for _ in range(count * 2):
        begin, end = _draw_span(text, rng)
        if end <= len(text) and all(end < other_begin or begin > other_end for other_begin, other_end in spans):
            spans.append((begin, end))
        if len(spans) == count:
            break
    return sorted(spans)


def _draw_span(text: str, rng: random.Random) -> tuple[int, int]:
    """One span, of the kinds that an editor asks for."""
    at = rng.randrange(len(text)) if text else 0
    line_start = text.rfind("\n", 0, at) + 1
    line_end = _line_end(text, at)
    kind = rng.random()
    if kind < 0.35:  # from the cursor to the end of its line
        return at, line_end
    if kind < 0.60:  # the whole line, with or without its indentation and newline
        indent = len(text[line_start:line_end]) - len(text[line_start:line_end].lstrip())
        return (line_start, line_end + 1) if rng.random() < 0.5 else (line_start + indent, line_end)
    if kind < 0.78:  # from somewhere to the end of a later line
        end = line_end
        for _ in range(rng.randint(1, 4)):
            end = _line_end(text, end + 1)
        return (line_start if rng.random() < 0.5 else at), end
    if kind < 0.96:  # some characters, as a selection
        return at, at + rng.randint(1, 48)
    return at, at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def draw_mask(sample: Sample, rng: random.Random) -> Tensor:
    """Which slots are masked [G, B]: half of the time all behind a committed start, else scattered.

    The first is what a decoder that commits next to the text meets, the second what out-of-order commits leave.
    """
    gaps, size = sample.targets.shape
    mask = torch.zeros((gaps, size), dtype=torch.bool)
    slots = torch.arange(size)
    for gap in range(gaps):
        real = int(sample.num_real[gap])
        if rng.random() < 0.5:
            mask[gap] = slots >= rng.randrange(real)
        else:
            share = rng.random()
            mask[gap] = torch.tensor([rng.random() < share for _ in range(size)])
            mask[gap, rng.randrange(real)] = True
        # Slots behind a visible end-of-gap tell nothing: what stands there is always masked.
        mask[gap, real:] = True
    return mask


def corrupt(sample: Sample, mask: Tensor, share: float, vocab_size: int, rng: random.Random) -> Tensor:
    """Canvas ids [G, B] with a share of the visible slots wrong: half random tokens, half tokens from beside."""
    ids = sample.targets.clone()
    gaps, size = ids.shape
    for gap in range(gaps):
        for slot in range(size):
            if not mask[gap, slot] and rng.random() < share:
                neighbour = int(sample.targets[gap, rng.randrange(size)])
                ids[gap, slot] = neighbour if rng.random() < 0.5 else rng.randrange(vocab_size)
    return ids
