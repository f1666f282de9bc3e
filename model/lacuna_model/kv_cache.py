"""The gap-buffer cache: exact keys and values of the context, kept between requests.

All rows of a document live side by side in one arena, in the order

    after | before | fill | canvas

so that typing appends to *before* without moving anything, and a canvas pass reads one contiguous stretch. Where a
row lies in the arena means nothing to attention: its place in the text is in its rotary position.
"""

from collections.abc import Generator
from dataclasses import dataclass

import torch

from lacuna_kernels import rotary
from lacuna_model.arena import Arena
from lacuna_model.context import Gap, Layout, Stream, StreamName
from lacuna_model.transformer import Transformer

# Arena order; *before* last, where typing happens.
ORDER: tuple[StreamName, ...] = ("after", "before")
# A CPU encodes so many rows at a time: their activations stay in its cache, and rows behind them are not looked at.
CPU_ROWS = 128


@dataclass(slots=True)
class CachedStream:
    """A stream as the arena holds it, from row ``offset``."""

    stream: Stream
    offset: int = 0


@dataclass(frozen=True, slots=True)
class UpdateCounts:
    """How many context tokens a request has, and how many of them had to be encoded."""

    total: int
    encoded: int


def finished(pieces: Generator[None, None, UpdateCounts]) -> UpdateCounts:
    """What an update comes to that is made in one go."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            counts: UpdateCounts = end.value
            return counts


class ContextCache:
    """Holds one document's context streams, encoded by the base side, and brings them up to date with a layout."""

    def __init__(self, base: Transformer, *, dtype: torch.dtype = torch.float32) -> None:
        self._base = base
        self._device = base.final_norm.device
        self._rows = CPU_ROWS if self._device.type == "cpu" else base.config.max_positions
        self.arena = Arena(base.config, self._device, dtype)
        self._streams: dict[StreamName, CachedStream] = {name: CachedStream(Stream()) for name in ORDER}

    @property
    def length(self) -> int:
        """Rows of context; behind them stand the fill and the canvas."""
        return sum(len(cached.stream) for cached in self._streams.values())

    def stream(self, name: StreamName) -> CachedStream:
        """A stream as it is cached."""
        return self._streams[name]

    @property
    def num_bytes(self) -> int:
        """Memory that the keys and values hold."""
        return self.arena.num_bytes

    def left_behind(self, num_before: int) -> int:
        """How many positions lie between the first ``num_before`` and those of *after*; 0 as long as that is empty."""
        after = self._streams["after"].stream
        return after.positions[0] - num_before if after.ids else 0

    def update(self, layout: Layout) -> UpdateCounts:
        """Encode what ``layout`` has and the cache lacks; everything else is reused exactly."""
        return finished(self.updating(layout))

    @torch.inference_mode()
    def updating(self, layout: Layout) -> Generator[None, None, UpdateCounts]:
        """As :meth:`update`, with pauses between pieces; where nobody goes on, what was encoded so far is kept."""
        wanted: dict[StreamName, Stream] = {"after": layout.after, "before": layout.before}
        kept = {name: self._kept_rows(name, wanted[name]) for name in ORDER}
        self.arena.reserve(sum(map(len, wanted.values())))
        self._place(wanted, kept)
        for name in ORDER:
            self._streams[name].stream = wanted[name].first(kept[name])
        pieces = [(name, row) for name in ORDER for row in range(kept[name], len(wanted[name]), self._rows)]
        for index, (name, begin) in enumerate(pieces):
            if index:
                yield
            stream, cached = wanted[name], self._streams[name]
            end = min(begin + self._rows, len(stream))
            self._encode(stream, cached.offset, begin, end)
            cached.stream = stream.first(end)
        return UpdateCounts(total=self.length, encoded=self.length - sum(kept.values()))

    def _kept_rows(self, name: StreamName, wanted: Stream) -> int:
        """How many leading rows of a stream stay; where all that stay moved alike, their keys are turned."""
        old = self._streams[name].stream
        if not old.ids or not wanted.ids:
            return 0
        shift = wanted.positions[0] - old.positions[0]
        count = 0
        for old_id, new_id, old_at, new_at in zip(old.ids, wanted.ids, old.positions, wanted.positions, strict=False):
            if old_id != new_id or new_at - old_at != shift:
                break
            count += 1
        if shift and count:
            self._turn(self._streams[name].offset, count, shift)
        return count

    def _turn(self, offset: int, rows: int, shift: int) -> None:
        """Move rows by ``shift`` positions: a stream sees only itself, so turning its keys is all that changes."""
        rotations = self._base.rotations
        cos, sin = rotations.cos[abs(shift)], rotations.sin[abs(shift)]
        keys = self.arena.keys[:, :, offset : offset + rows]
        keys.copy_(rotary(keys.float(), cos, sin if shift > 0 else -sin))

    def _place(self, wanted: dict[StreamName, Stream], kept: dict[StreamName, int]) -> None:
        """Give every stream its stretch of the arena, moving the rows that stay."""
        offsets, offset = {}, 0
        for name in ORDER:
            offsets[name] = offset
            offset += len(wanted[name])
        # Rows that move right are moved last stream first, rows that move left first stream first: none is run over.
        for name in ORDER:
            cached = self._streams[name]
            if offsets[name] < cached.offset:
                self.arena.move(cached.offset, offsets[name], kept[name])
        for name in reversed(ORDER):
            cached = self._streams[name]
            if offsets[name] > cached.offset:
                self.arena.move(cached.offset, offsets[name], kept[name])
            cached.offset = offsets[name]

    def _encode(self, stream: Stream, offset: int, begin: int, end: int) -> None:
        """Encode rows of ``stream``, each seeing the stream up to itself."""
        ids = torch.tensor([stream.ids[begin:end]], device=self._device)
        positions = torch.tensor(stream.positions[begin:end], device=self._device)
        mask = torch.ones((end - begin, end), dtype=torch.bool, device=self._device).tril(begin)
        self.arena.head, self.arena.tail = offset, offset + begin
        self._base.hidden(self._base.embed(ids), positions, self.arena, mask)
        self.arena.head = 0

    def visible_to(self, gap: Gap) -> slice:
        """The context rows that the base may see at a gap: its stream up to it."""
        offset = self._streams[gap.parent].offset
        return slice(offset, offset + gap.parent_len)
