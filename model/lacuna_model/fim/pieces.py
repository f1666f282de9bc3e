"""How many rows a pass over a context reads at once.

A CPU reads few: their activations stay in its cache. A GPU reads thousands in about the time of a few, so it takes as
many as keep the wait of a request that arrives meanwhile short.
"""

from collections.abc import Generator, Sequence
from time import perf_counter

import torch

from lacuna_model.fim.track import Chain, num_unread
from lacuna_model.fim.tracks import TrackReader
from lacuna_model.network.devices import HOST

# Rows of a piece on a CPU.
CPU_ROWS = 128
# On another device: the rows of a piece at first and at least, and the milliseconds that a piece should take at most.
WIDE_ROWS, LEAST_ROWS = 2048, 64
PIECE_MS = 50.0


class ContextPieces:
    """The pieces in which one model's contexts are read on a ``device``.

    ``rows`` are those of a piece, at most.
    """

    def __init__(self, device: torch.device, *, whole: bool = False) -> None:
        """``whole``: a pass cannot pause, wherever it is made."""
        self._whole = whole
        self._adapts = whole or device != HOST
        self.rows = WIDE_ROWS if device != HOST else CPU_ROWS

    def reading(
        self, reader: TrackReader, chains: Sequence[Chain], most: int | None = None
    ) -> Generator[None, None, None]:
        """Read the next piece of the chains, of at most ``most`` rows; on a CPU with pauses between its layers.

        A device that works on after the call is waited for: else all pieces would be queued there before any request
        that arrives meanwhile.
        """
        rows = self.rows if most is None else min(self.rows, most)
        if not self._adapts:
            yield from reader.reading(chains, rows)
            return
        began = perf_counter()
        if self._whole:
            unread = num_unread(chains)
            yield from reader.reading(chains, rows)
            self.took(min(rows, unread), (perf_counter() - began) * 1e3)
            return
        read = reader.read(chains, rows)
        if read:
            next(iter(read.values()))[-1, 0].item()
            count, ms = sum(map(len, read.values())), (perf_counter() - began) * 1e3
            self.took(count, ms)
            reader.saw_reading(count, ms)

    def took(self, rows: int, ms: float) -> None:
        """Learn that a piece of ``rows`` rows took so many milliseconds."""
        if ms > PIECE_MS and rows > LEAST_ROWS:
            self.rows = max(min(self.rows, rows) // 2, LEAST_ROWS)
        elif rows >= self.rows and ms < PIECE_MS / 2:
            self.rows = min(self.rows * 2, WIDE_ROWS)
