"""Training samples: a stretch of a document, gaps as an editor makes them, and what should stand in them."""

import random
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from lacuna_model.context import Layout, lay_out
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.shards import TokenDocument
from lacuna_model.train.spans import draw_spans

# Cutting text at gaps takes a few more tokens than the text had.
_SLACK = 8


class SampleOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What samples are drawn with. ``context``, ``slots`` and ``rows`` are the sizes every sample is padded to.

    ``context``: tokens of all streams; ``slots``: those of all gaps together; ``rows``: rows of the canvas pass,
    filled with as many copies of the canvas as fit, each under a mask of its own. A sample's blocks have one of
    ``block_sizes`` slots, drawn independently of what is to be filled: small blocks waste fewer rows on slots behind
    the end, and the block's length tells nothing of the fill's. ``corrupted`` is the share of visible slots that are
    wrong, ``snippets`` that of samples with another file of the package in front of their text (``snippet_context``
    tokens at most), ``nodes`` that of gaps that are syntax nodes. ``reserve`` and ``hole`` are free positions.
    """

    block_sizes: tuple[int, ...] = (4, 6, 8, 12, 16)
    context: int = 384
    slots: int = 96
    rows: int = 208
    max_gaps: int = 8
    corrupted: float = 0.1
    snippets: float = 0.25
    snippet_context: int = 96
    nodes: float = 0.2
    reserve: tuple[int, int] = (16, 640)
    hole: tuple[int, int] = (16, 128)

    def gaps_of(self, block_size: int) -> int:
        """How many gaps of such blocks have room, in two copies at least."""
        return min(self.max_gaps, self.slots // block_size, self.rows // (2 * (block_size + 1)))

    def max_blocks(self, shift: bool) -> int:
        """How many blocks the rows have room for, in all copies together; with ``shift`` each has an anchor."""
        return self.rows // (min(self.block_sizes) + shift)


@dataclass(frozen=True, slots=True)
class Sample:
    """A laid-out stretch of text and, per gap, what its block of slots should hold.

    ``targets`` [G, B]: the true tokens, then end-of-gap where the fill ends inside the block.
    ``num_real`` [G]: how many of them count fully; those behind the first end-of-gap are padding.
    """

    layout: Layout
    targets: NDArray[np.int64]
    num_real: NDArray[np.int64]

    @property
    def real(self) -> NDArray[np.bool_]:
        """Which slots count fully. [G, B]"""
        behind: NDArray[np.bool_] = np.arange(self.targets.shape[1]) < self.num_real[:, None]
        return behind


def draw_sample(
    document: TokenDocument,
    other: TokenDocument | None,
    tokenizer: Tokenizer,
    options: SampleOptions,
    rng: random.Random,
) -> Sample | None:
    """A sample from ``document``, a stretch of ``other`` as its snippet; None where the text is too short for a gap."""
    snippet = ""
    room = options.context - _SLACK
    if other is not None:
        length = rng.randint(1, options.snippet_context)
        snippet = _stretch(other, length, tokenizer, rng) + "\n"
        room -= length + _SLACK
    while room > 0:
        sample = _cut_out(_stretch(document, room, tokenizer, rng), document.language, snippet, tokenizer, options, rng)
        if sample is None or len_context(sample.layout) <= options.context:
            return sample
        room = room * 3 // 4
    return None


def len_context(layout: Layout) -> int:
    """Tokens of all streams."""
    return len(layout.before) + len(layout.after)


def _stretch(document: TokenDocument, length: int, tokenizer: Tokenizer, rng: random.Random) -> str:
    """``length`` tokens from anywhere in a document as text, mostly from the start of a line on."""
    start = rng.randrange(max(1, len(document.tokens) - length + 1))
    text = tokenizer.decode_bytes(document.tokens[start : start + length]).decode(errors="ignore")
    return text[text.find("\n") + 1 :] if start and rng.random() < 0.9 else text


def _cut_out(
    window: str, language: str, snippet: str, tokenizer: Tokenizer, options: SampleOptions, rng: random.Random
) -> Sample | None:
    size = rng.choice(options.block_sizes)
    count = rng.randint(1, options.gaps_of(size))
    spans = draw_spans(window, count, rng, language=language, nodes=options.nodes)
    if not spans:
        return None
    ends = [0, *(end for _, end in spans)]
    starts = [*(begin for begin, _ in spans), len(window)]
    segments = [window[end:begin] for end, begin in zip(ends, starts, strict=True)]
    low, high = options.reserve
    reserve = int(low * (high / low) ** rng.random())
    layout = lay_out(segments, tokenizer, reserve=lambda _: reserve, hole=rng.randint(*options.hole), snippets=snippet)
    fills = [window[begin:end] for begin, end in spans]
    rows = [block_targets(gap.prefix, fill, tokenizer, size) for gap, fill in zip(layout.gaps, fills, strict=True)]
    return Sample(layout, np.array([row for row, _ in rows]), np.array([real for _, real in rows]))


def block_targets(prefix: bytes, fill: str, tokenizer: Tokenizer, block_size: int) -> tuple[list[int], int]:
    """The tokens of a gap's first block, padded with end-of-gap, and how many of them count fully.

    Healed text is told again in the tokens it has in front of this fill, as `healing.lead` lets the model tell it.
    """
    tokens = tokenizer.encode(prefix.decode() + fill)
    real = min(len(tokens) + 1, block_size)
    tokens = tokens[:block_size]
    return tokens + [tokenizer.eog_id] * (block_size - len(tokens)), real
