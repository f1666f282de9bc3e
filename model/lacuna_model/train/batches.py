"""Batches: samples as arrays of fixed shapes, so that a device runs the same program every step."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.masks import Copies, draw_copies
from lacuna_model.train.samples import Sample, SampleOptions, draw_sample
from lacuna_model.train.shards import ShardReader

# What a canvas row predicts: nothing, a masked slot, a visible one, or one behind the end of its gap.
NOTHING, MASKED, VISIBLE, PADDING = range(4)

Array = NDArray[Any]


class Shaped(Protocol):
    """An array of numpy or a tensor of torch."""

    @property
    def shape(self) -> Sequence[int]:
        """Sizes of the dimensions."""
        ...


T = TypeVar("T", bound=Shaped)
U = TypeVar("U", bound=Shaped)


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """Samples side by side; N context rows, S slots, R canvas rows each, padded. Arrays, or tensors on a device.

    The base reads context and, behind it, every gap's true tokens as a branch [B, N + S]: a row sees the earlier
    rows of its own ``stream`` before ``fork``, and those of its own ``branch``. ``slot_rows`` [B, S] are the rows
    whose output predicts the slots. Padding has stream -1.

    The canvas pass [B, R] has rows of all copies; a row sees the context and the rows of its own ``copy`` (-1:
    padding). ``slot`` is the slot that the row predicts, ``target`` its token, ``kind`` what it is to the loss.
    ``frontier`` [B, F] are the rows that predict the first masked slots of the gaps, -1 where there are fewer.
    ``masked`` is bool, all others int64.
    """

    ids: T
    positions: T
    stream: T
    branch: T
    fork: T
    slot_rows: T
    canvas_ids: T
    canvas_positions: T
    masked: T
    copy: T
    slot: T
    target: T
    kind: T
    frontier: T

    @property
    def num_context(self) -> int:
        """Rows of context, padding among them."""
        return self.ids.shape[1] - self.slot_rows.shape[1]

    def map(self, change: Callable[[T], U]) -> "Batch[U]":
        """The same batch with every array changed."""
        return Batch(**{field.name: change(getattr(self, field.name)) for field in fields(self)})


@dataclass(frozen=True, slots=True)
class BatchSource:
    """Draws batch after batch; the number of a batch and the seed determine it."""

    reader: ShardReader
    tokenizer: Tokenizer
    options: SampleOptions
    batch_size: int
    shift: bool
    seed: int

    def draw(self, number: int) -> Batch[Array]:
        """The batch of that number."""
        rng = random.Random(f"{self.seed}/{number}")
        samples = [self.sample(number * self.batch_size + i, rng) for i in range(self.batch_size)]
        vocab_size = self.tokenizer.vocab_size
        pairs = [(sample, draw_copies(sample, self.options, vocab_size, rng)) for sample in samples]
        return collate(pairs, self.options, self.shift)

    def sample(self, position: int, rng: random.Random) -> Sample:
        """A sample from the document at ``position``, or from the next that is long enough."""
        sample = None
        while sample is None:
            document = self.reader.read(position)
            other = self.reader.neighbour(position, rng) if rng.random() < self.options.snippets else None
            sample = draw_sample(document, other, self.tokenizer, self.options, rng)
            position += 1
        return sample


def collate(samples: Sequence[tuple[Sample, Copies]], options: SampleOptions, shift: bool) -> Batch[Array]:
    """A batch of samples, each within the sizes of ``options``."""
    size = len(samples)
    base = (size, options.context + options.slots)
    canvas = (size, options.rows)
    batch = Batch(
        ids=np.zeros(base, np.int64),
        positions=np.zeros(base, np.int64),
        stream=np.full(base, -1),
        branch=np.full(base, -1),
        fork=np.zeros(base, np.int64),
        slot_rows=np.zeros((size, options.slots), np.int64),
        canvas_ids=np.zeros(canvas, np.int64),
        canvas_positions=np.zeros(canvas, np.int64),
        masked=np.zeros(canvas, np.bool_),
        copy=np.full(canvas, -1),
        slot=np.zeros(canvas, np.int64),
        target=np.zeros(canvas, np.int64),
        kind=np.full(canvas, NOTHING),
        frontier=np.full((size, options.max_blocks(shift)), -1),
    )
    for index, (sample, copies) in enumerate(samples):
        starts = _write_streams(batch, index, sample)
        _write_branches(batch, index, sample, starts, options.context)
        _write_canvas(batch, index, sample, copies, shift)
    return batch


def _write_streams(batch: Batch[Array], index: int, sample: Sample) -> dict[str, int]:
    """Put the context streams one behind the other; returns where each starts."""
    starts, end = {}, 0
    layout = sample.layout
    for number, name in enumerate(("before", "after")):
        stream = getattr(layout, name)
        own = slice(end, end + len(stream))
        starts[name] = end
        batch.ids[index, own] = stream.ids
        batch.positions[index, own] = stream.positions
        batch.stream[index, own] = number
        batch.fork[index, own] = own.stop
        end = own.stop
    return starts


def _write_branches(batch: Batch[Array], index: int, sample: Sample, starts: dict[str, int], first: int) -> None:
    """Put every gap's true tokens behind the context, from row ``first`` on."""
    size = sample.targets.shape[1]
    for number, gap in enumerate(sample.layout.gaps):
        own = slice(first + number * size, first + (number + 1) * size)
        fork = starts[gap.parent] + gap.parent_len
        batch.ids[index, own] = sample.targets[number]
        batch.positions[index, own] = np.arange(gap.position, gap.position + size)
        batch.stream[index, own] = batch.stream[index, fork - 1]
        batch.branch[index, own] = number
        batch.fork[index, own] = fork
        batch.slot_rows[index, number * size : (number + 1) * size] = [fork - 1, *range(own.start, own.stop - 1)]


def _write_canvas(batch: Batch[Array], index: int, sample: Sample, copies: Copies, shift: bool) -> None:
    """Put all copies' rows one behind the other, block by block: an anchor (with ``shift``) and the slots."""
    num_copies, gaps, size = copies.masks.shape
    width = size + shift
    shape = (num_copies, gaps, width)
    rows = num_copies * gaps * width
    anchors = np.array([sample.layout.anchor(gap) for gap in sample.layout.gaps])
    positions = np.array([gap.position for gap in sample.layout.gaps])
    kind = np.where(sample.real, np.where(copies.masks, MASKED, VISIBLE), PADDING)
    blocks = {
        "canvas_ids": copies.ids,
        "masked": copies.masks,
        "slot": np.broadcast_to(np.arange(gaps * size).reshape(gaps, size), copies.masks.shape),
        "target": np.broadcast_to(sample.targets, copies.masks.shape),
        "kind": kind,
    }
    for name, slots in blocks.items():
        into = np.zeros(shape, slots.dtype)
        # Rows that are slots themselves stand behind the anchor; a row predicts the next slot with ``shift``.
        behind = shift if name in ("canvas_ids", "masked") else 0
        into[:, :, behind : behind + size] = slots
        if shift and name == "canvas_ids":
            into[:, :, 0] = anchors
        getattr(batch, name)[index, :rows] = into.reshape(-1)
    batch.canvas_positions[index, :rows] = np.broadcast_to(
        positions[:, None] + np.arange(-int(shift), size), shape
    ).reshape(-1)
    batch.copy[index, :rows] = np.arange(num_copies).repeat(gaps * width)
    copy, gap, slot = np.nonzero((kind == MASKED) & (copies.masks.cumsum(axis=2) == 1))
    batch.frontier[index, : len(slot)] = (copy * gaps + gap) * width + slot
