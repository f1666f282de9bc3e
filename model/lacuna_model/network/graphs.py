"""Passes of few rows on a GPU as recorded graphs: one launch instead of ten a layer.

A graph is recorded for a number of rows and a length of context, each rounded up, when a pass first needs it. The
addresses of keys and values are data that it reads, so that it serves all documents, and several in one pass. Rows
beyond those of a pass are padding: they write nothing, and attend to nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lacuna_model.network.gpu_layers import ArenaRows, GpuLayers, Spot, described, show

ROWS = (1, 2, 4, 8, 16, 32, 64)
# The shortest length of context that a graph is recorded for.
LEAST_LENGTH = 512
# So many graphs are kept, those used last.
MOST_GRAPHS = 48

# Takes the launches of a pass, and returns a function that repeats them.
Capture = Callable[[Callable[[], None]], Callable[[], None]]


def cuda_graph(run: Callable[[], None]) -> Callable[[], None]:
    """Record the launches of ``run`` as a CUDA graph. It runs once before, since kernels are compiled at first use."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may use the device
        run()
    replay: Callable[[], None] = graph.replay
    return replay


@dataclass(frozen=True, slots=True)
class Buffers:
    """What a graph reads and writes, at fixed addresses: a pass's rows ``x``, their places, and the states ``out``.

    ``gate`` [R, 1] is 1 in mask rows; None where the graph has none.
    """

    x: Tensor
    positions: Tensor
    data: Tensor
    mask: Tensor
    out: Tensor
    gate: Tensor | None

    def fill(self, x: Tensor, positions: Tensor, parts: Sequence[ArenaRows], gated: int) -> None:
        """Put the rows of a pass, the last ``gated`` of them mask rows, first, and mark the others as padding."""
        self.x[: len(x)].copy_(x)
        self.positions[: len(x)].copy_(positions)
        padding = torch.zeros((len(self.x) - len(x), self.data.shape[1]), dtype=torch.int64)
        self.data.copy_(torch.cat([described(parts), padding]))
        show(parts, self.mask)
        if self.gate is not None:
            self.gate.zero_()
            self.gate[len(x) - gated : len(x)] = 1


class Graphs:
    """The recorded passes of one model's layers."""

    def __init__(self, layers: GpuLayers, capture: Capture = cuda_graph) -> None:
        self._layers = layers
        self._capture = capture
        self._kept: dict[tuple[int, int, torch.dtype, bool], tuple[Buffers, Callable[[], None]]] = {}
        self.recorded = 0

    def states(self, x: Tensor, positions: Tensor, parts: Sequence[ArenaRows], gated: int = 0) -> Tensor:
        """As :meth:`GpuLayers.__call__` for at most ``ROWS[-1]`` rows."""
        rows = next(size for size in ROWS if size >= len(x))
        length = max(LEAST_LENGTH, *(1 << (part.end - 1).bit_length() for part in parts))
        keys = parts[0].arena.keys
        key = rows, length, keys.dtype, gated > 0
        buffers, replay = self._kept.pop(key, None) or (self._buffers(rows, length, keys, x.shape[1], gated > 0), None)
        buffers.fill(x, positions, parts, gated)
        if replay is None:
            replay = self._record(buffers, length)
        self._kept[key] = buffers, replay
        replay()
        return buffers.out[: len(x)].clone()

    def _record(self, buffers: Buffers, length: int) -> Callable[[], None]:
        spot = Spot(len(buffers.x), buffers.data, buffers.mask, length)

        def run() -> None:
            buffers.out.copy_(self._layers.states(buffers.x, buffers.positions, [spot], buffers.gate))

        while len(self._kept) >= MOST_GRAPHS:
            del self._kept[next(iter(self._kept))]
        self.recorded += 1
        return self._capture(run)

    @staticmethod
    @torch.inference_mode(False)
    def _buffers(rows: int, length: int, keys: Tensor, width: int, gated: bool) -> Buffers:
        def zeros(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(shape, device=keys.device, dtype=dtype)

        return Buffers(
            zeros(rows, width, dtype=keys.dtype),
            zeros(rows, dtype=torch.int64),
            zeros(rows, 6, dtype=torch.int64),
            zeros(rows, length, dtype=torch.uint8),
            zeros(rows, width, dtype=torch.float32),
            zeros(rows, 1, dtype=keys.dtype) if gated else None,
        )
