"""The base's side of a request: it reads the fills left to right behind the context, every token once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lacuna_model.canvas import Canvas, Key
from lacuna_model.context import Gap, Layout
from lacuna_model.kv_cache import ContextCache
from lacuna_model.rows import said_of
from lacuna_model.transformer import Transformer

# The candidate that the first probe is; further ones count down.
PROBE = -1


@dataclass(slots=True)
class Line:
    """What the base has read at a gap: the anchor, the tokens behind it, and the arena row of each."""

    tokens: list[int]
    rows: list[int]

    def keep(self, tokens: Sequence[int]) -> None:
        """Forget what is not the beginning of ``tokens``."""
        pairs = enumerate(zip(self.tokens, tokens, strict=False))
        known = next((i for i, (old, new) in pairs if old != new), min(len(self.tokens), len(tokens)))
        del self.tokens[known:], self.rows[known:]


class BaseSide:
    """The base's reading of a request's canvases, in the arena's rows behind the context:

        context | finished blocks | canvas | current blocks

    A pass over the canvas writes at ``canvas_start`` and sees what lies in front, so that it has finished blocks as
    context and its own slots once. A base pass goes on from what the passes before it read, as far as that was
    committed; what else they read of drafts is overwritten.
    """

    def __init__(self, base: Transformer, cache: ContextCache, layout: Layout) -> None:
        self._base = base
        self._cache = cache
        self._layout = layout
        self._lines: dict[Key, Line] = {}
        self._num_finished = 0
        self._num_canvas = 0

    @property
    def canvas_start(self) -> int:
        """The arena row at which a pass over the canvas begins to write."""
        return self._cache.length + self._num_finished

    def make_room(self, rows: int) -> None:
        """Keep ``rows`` rows for passes over the canvas; those of current blocks are read anew where they stood."""
        if rows > self._num_canvas:
            for line in self._lines.values():
                line.keep(line.tokens[: sum(row < self.canvas_start for row in line.rows)])
            self._num_canvas = rows

    def finished_rows(self, candidate: int) -> list[int]:
        """The rows of a candidate's finished blocks."""
        lines = [line for (owner, _), line in self._lines.items() if owner == candidate]
        return [row for line in lines for row in line.rows if self._cache.length <= row < self.canvas_start]

    def anchor(self, canvas: Canvas) -> int:
        """The token in front of a canvas's current block."""
        return canvas.done[-1] if canvas.done else self._layout.anchor(canvas.gap)

    def next_logits(self, canvases: Sequence[Canvas], inputs: Sequence[Sequence[int]]) -> list[Tensor]:
        """The base's logits [N - frontier, V] of the slots from the frontier on that ``inputs`` [N] reach.

        They are the committed tokens, and what is to be taken for the slots behind them: slot i is read given the
        first i of them.
        """
        fresh: list[list[int]] = []
        heads: list[int] = []
        for canvas, tokens in zip(canvases, inputs, strict=True):
            line = self._line(canvas)
            committed = self._committed(canvas)
            wanted = len(tokens) - canvas.frontier
            line.keep(committed[:-1] if wanted else committed)  # the last one is read anew, for its output
            first = sum(map(len, fresh)) + len(committed) - 1 - len(line.tokens)
            heads += range(first, first + wanted)
            fresh.append([*committed[len(line.tokens) :], *tokens[canvas.frontier : -1]])
        said = self._base.head(self._read(canvases, fresh)[heads])
        sizes = [len(tokens) - canvas.frontier for canvas, tokens in zip(canvases, inputs, strict=True)]
        return list(said.split_with_sizes(sizes))

    def continuations(self, gap: Gap, written: Sequence[int], runs: Sequence[Sequence[int]]) -> list[Tensor]:
        """The logits [n, V] of the tokens of each of ``runs`` [n] as what follows ``written`` in a gap, in one pass."""
        probes = [Canvas(gap, len(run), 0, candidate=PROBE - number) for number, run in enumerate(runs)]
        for probe, run in zip(probes, runs, strict=True):
            probe.done, probe.slots = list(written), [None] * len(run)
        said = self.next_logits(probes, runs)
        for probe in probes:
            del self._lines[probe.key]
        return said

    def log_probabilities(self, gap: Gap, tokens: Sequence[int]) -> list[float]:
        """The log-probability of each of ``tokens`` as what stands in a gap and goes on behind it."""
        (rows,) = self.continuations(gap, (), [tokens])
        found: list[float] = said_of(rows.log_softmax(-1), tokens).tolist()
        return found

    def finish_block(self, canvases: Sequence[Canvas], *, guided: bool) -> None:
        """Make what the blocks brought context of the blocks to come.

        Where the base guides, its next pass reads the last token of a canvas anyway, for its output.
        """
        fresh: list[list[int]] = []
        for canvas in canvases:
            line = self._line(canvas)
            tokens = self._committed(canvas)
            line.keep(tokens)
            fresh.append(tokens[len(line.tokens) : -1 if guided and not canvas.closed else None])
        if any(fresh):
            self._read(canvases, fresh)
        for canvas in canvases:
            self._line(canvas).rows[0] = self._anchor_row(canvas.gap)  # which may have been read anew
        self._num_finished += self._gather(self.canvas_start)
        self._num_canvas = 0

    def _line(self, canvas: Canvas) -> Line:
        """What was read at a canvas; of one never seen, the context's own row of the anchor."""
        unread = Line([self._layout.anchor(canvas.gap)], [self._anchor_row(canvas.gap)])
        return self._lines.setdefault(canvas.key, unread)

    def _committed(self, canvas: Canvas) -> list[int]:
        """The line of a canvas as far as it is committed."""
        return [self._layout.anchor(canvas.gap), *canvas.tokens()]

    def _anchor_row(self, gap: Gap) -> int:
        row: int = self._cache.visible_to(gap).stop - 1
        return row

    def _gather(self, start: int) -> int:
        """Move all rows of current blocks to ``start`` and behind, in their order; returns how many they are."""
        held = [(row, line, i) for line in self._lines.values() for i, row in enumerate(line.rows)]
        current = sorted((entry for entry in held if entry[0] >= self.canvas_start), key=lambda entry: entry[0])
        for target, (row, line, i) in enumerate(current, start):
            self._cache.arena.move(row, target, 1)
            line.rows[i] = target
        return len(current)

    def _read(self, canvases: Sequence[Canvas], fresh: Sequence[Sequence[int]]) -> Tensor:
        """Hidden states [R, H] of the fresh tokens of every line, read in one pass behind what was read before."""
        start = self.canvas_start + self._num_canvas
        start += self._gather(start)
        count = sum(map(len, fresh))
        mask = torch.zeros((count, start + count), dtype=torch.bool)
        positions: list[int] = []
        for canvas, tokens in zip(canvases, fresh, strict=True):
            line = self._line(canvas)
            own = slice(len(positions), len(positions) + len(tokens))
            rows = range(start + own.start, start + own.stop)
            for stretch in self._visible_to(canvas.gap):
                mask[own, stretch] = True
            mask[own, self._anchor_row(canvas.gap)] = False  # the line has its own, read anew
            mask[own, line.rows] = True
            mask[own, rows.start : rows.stop] = torch.ones((len(rows), len(rows)), dtype=torch.bool).tril()
            first = canvas.gap.position - 1 + len(line.tokens)
            positions += range(first, first + len(rows))
            line.tokens += tokens
            line.rows += rows
        head = min(stretch.start for canvas in canvases for stretch in self._visible_to(canvas.gap))
        return self._pass([token for tokens in fresh for token in tokens], positions, mask[:, head:], head, start)

    def _pass(self, tokens: Sequence[int], positions: Sequence[int], mask: Tensor, head: int, start: int) -> Tensor:
        """A pass that sees the arena from row ``head`` on and writes from ``start`` on."""
        arena, device = self._cache.arena, self._base.final_norm.device
        arena.reserve(start + len(tokens))
        arena.head, arena.tail = head, start
        x = self._base.embed(torch.tensor([tokens], device=device))
        hidden = self._base.hidden(x, torch.tensor(positions, device=device), arena, mask.to(device))
        arena.head = 0
        return hidden[0]

    def _visible_to(self, gap: Gap) -> list[slice]:
        """The context rows that the base sees at a gap: its stream up to it, and all of *before*.

        What stands in front of a further gap was encoded without *before*; the base makes good use of both all the
        same (its best next token was right in 63 % of the slots of such gaps, and in 59 % without *before*).
        """
        own = self._cache.visible_to(gap)
        if gap.parent == "before":
            return [own]
        before = self._cache.stream("before")
        return [own, slice(before.offset, before.offset + len(before.stream))]
