"""Passes of few rows on a GPU as recorded graphs: one launch from token ids to what is kept of the logits.

A graph is recorded for a number of rows and a length of context, each rounded up, when a pass first needs it. All that
differs from pass to pass is data that it reads from one block of memory, which one copy fills: tokens, positions, and
the addresses of keys and values, and of the lists of what the rows attend to, of which another copy brings the ends.
So it serves all documents, and several in one pass. Rows beyond those of a pass are padding: they write nothing, and
attend to nothing.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_kernels.native import AddedRows
from lacuna_model.network.arena import PassPart, attended_in
from lacuna_model.network.gpu_layers import GpuLayers, Spot, arena_of, placed
from lacuna_model.network.linear import Linear

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 192)
# The shortest length of context that a graph is recorded for: the default window with its snippets is shorter.
LEAST_LENGTH = 2048
# Numbers of a row in a graph's input: of its place; and with its token, position, whether it is early, and additions.
PLACE, NUMBERS = 11, 15
# So many graphs are kept, those used last.
MAX_GRAPHS = 48

# Takes the launches of a pass, and returns a function that repeats them.
Capture = Callable[[Callable[[], None]], Callable[[], None]]
# Makes the inputs [..., H] of rows [...], and is told whether there may be mask rows among them.
Embed = Callable[[Tensor, bool], Tensor]
Block = TypeVar("Block", Tensor, NDArray[np.int64])

# The memory that all graphs share: no two run at a time, and what a pass leaves is read before the next one.
pool = functools.cache(torch.cuda.graph_pool_handle)


def cuda_graph(run: Callable[[], None]) -> Callable[[], None]:
    """Record the launches of ``run`` as a CUDA graph. It runs once before, since kernels are compiled at first use."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool(), capture_error_mode="thread_local"):  # other threads may use the device
        run()
    replay: Callable[[], None] = graph.replay
    return replay


class Digest(Protocol):
    """Says what is kept of a pass's logits; it is hashable, since graphs are kept by it."""

    @property
    def width(self) -> int:
        """How many numbers are kept of a row."""

    def restricted(self, logits: Tensor, early: Tensor) -> Tensor:
        """The logits [R, V], changed in place, without tokens that cannot come next; no end where it is ``early``."""

    def rows(self, logits: Tensor) -> Tensor:
        """What is kept of each row of such logits: float32 [R, ``width``]."""


@dataclass(frozen=True, slots=True)
class PassRead:
    """What a pass has read: ``states`` [R, H], and where a :class:`Digest` was recorded with it, what that has kept.

    The ``logits`` [R, V] and the ``kept`` rows [R, width] stay until the next pass. One that has ``recorded`` a graph
    took longer than others.
    """

    states: Tensor
    logits: Tensor | None = None
    kept: Tensor | None = None
    recorded: bool = False


def sections(block: Block) -> tuple[Block, Block, Block, Block, Block]:
    """The parts of a graph's input [15 R]: placements [R, 11], tokens, positions, early rows [R], and additions [R].

    Of a row's additions the kind is counted from 1 on; 0 is none.
    """
    rows = len(block) // NUMBERS
    lists = block[PLACE * rows :].reshape(4, rows)
    return block[: PLACE * rows].reshape(rows, PLACE), lists[0], lists[1], lists[2], lists[3]


@dataclass(slots=True)
class Recorded:
    """A graph's memory, at fixed addresses: what it reads, as one ``block``, and what it leaves behind."""

    block: Tensor
    states: Tensor
    kept: Tensor | None
    replay: Callable[[], None] | None = None
    logits: Tensor | None = None


class Graphs:
    """The recorded passes of one model: its ``layers``, between the ``embed`` and the ``head`` of its tokens."""

    def __init__(self, layers: GpuLayers, embed: Embed, head: Linear, capture: Capture = cuda_graph) -> None:
        self._layers = layers
        self._embed = embed
        self._head = head
        self._capture = capture
        self._kept: dict[tuple[int, int, torch.dtype, tuple[int, ...], Digest | None], Recorded] = {}

    def read(
        self,
        ids: Sequence[int],
        positions: Sequence[int],
        parts: Sequence[PassPart],
        early: Sequence[bool],
        added: Sequence[AddedRows],
        digest: Digest | None,
    ) -> PassRead:
        """Read at most ``ROWS[-1]`` rows, as :meth:`.Transformer.read` does; the states are a copy.

        ``early`` are the rows after which no end may come. Of those of ``added`` with the first kind -j stands for mask
        row j.
        """
        count = len(ids)
        rows = next(size for size in ROWS if size >= count)
        where = placed(parts)
        length = max(LEAST_LENGTH, 1 << (where.most - 1).bit_length())
        keys = arena_of(parts[0]).keys
        key = rows, length, keys.dtype, tuple(sorted({span.kind for span in added})), digest
        one = self._kept.pop(key, None) or self._memory(rows, keys, digest)
        # Memory of its own for every pass: the copy from it may still run when the next pass is put together.
        packed = torch.zeros(len(one.block), dtype=torch.int64, pin_memory=keys.is_cuda)
        placements, *lists, kinds = sections(packed.numpy())
        placements[:count] = where.numbers
        for section, given in zip(lists, (ids, positions, early), strict=True):
            section[: len(given)] = given
        for span in added:
            kinds[span.first : span.first + span.rows] = 1 + span.kind
        one.block.copy_(packed, non_blocking=True)
        is_new = one.replay is None
        one.replay = one.replay or self._record(one, *key)
        self._kept[key] = one
        one.replay()
        states = one.states[:count].clone()
        if one.kept is None or one.logits is None:
            return PassRead(states, recorded=is_new)
        return PassRead(states, one.logits[:count], one.kept[:count], recorded=is_new)

    def _record(
        self,
        one: Recorded,
        rows: int,
        length: int,
        stored: torch.dtype,
        kinds: tuple[int, ...],
        digest: Digest | None,
    ) -> Callable[[], None]:
        placements, ids, positions, early, added = sections(one.block)
        dtype = attended_in(stored)

        def run() -> None:
            spot = Spot(rows, placements, length, dtype is not stored)
            gates = {kind: (added == 1 + kind).to(dtype)[:, None] for kind in kinds}
            x = self._embed(ids, 0 in kinds).to(dtype)
            one.states.copy_(self._layers.states(x, positions, [spot], gates))
            if digest is not None and one.kept is not None:
                one.logits = digest.restricted(self._head(one.states), early != 0)
                one.kept.copy_(digest.rows(one.logits))

        while len(self._kept) >= MAX_GRAPHS:
            del self._kept[next(iter(self._kept))]
        return self._capture(run)

    def _memory(self, rows: int, keys: Tensor, digest: Digest | None) -> Recorded:
        """Memory for a graph, which passes in inference mode and others may use."""

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, device=keys.device, dtype=dtype)

        with torch.inference_mode(False):
            states = zeros(rows, self._layers.config.hidden_size)
            kept = None if digest is None else zeros(rows, digest.width)
            return Recorded(zeros(NUMBERS * rows, dtype=torch.int64), states, kept)
