"""The gap buffer of a fill-in-the-middle prompt: what is kept of a document between keystrokes, and what is read anew.

The prompt of gap g is

    head | between 1 | .. | between g | suffix g | middle and fill

in one causal order, as such a model was trained. *head* is all in front of the first gap, snippets included; *between
i* is what gap i - 1 became and the text up to gap i; *suffix g* is the text after gap g, without the later gaps.
Typing appends to *head*. The suffix keeps its keys and values, turned to their new positions, but for its nearest
tokens: these are read anew in the pass that reads what was typed. Where the rest of it has missed too much, all of
it is read anew.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch

from lacuna_model.core.context import Layout, TextTokenizer, UpdateCounts, finished
from lacuna_model.fim.tracks import UNREAD, Chain, Track, TrackReader, common_prefix
from lacuna_model.network.transformer import Transformer

# A CPU encodes so many rows at a time: their activations stay in its cache, and rows behind them are not looked at.
CPU_ROWS = 128
# While nobody waits, a piece is short: a request that comes meanwhile waits for its end.
ROWS_AHEAD = 16
# So many tokens of the suffix are read anew when anything in front of it has changed.
NEAR = 24
# The rest of it is read anew where the head differs by more tokens from the one that it has seen.
MOST_STALE = 96


@dataclass(frozen=True, slots=True)
class Prompts:
    """The tokens of a request's prompts: the head, and for each gap the text behind it up to the next and to the end.

    ``between`` [n - 1] stand between neighbouring gaps, ``suffixes`` [n] begin with the suffix token.
    """

    head: list[int]
    between: list[list[int]]
    suffixes: list[list[int]]

    @classmethod
    def of(cls, layout: Layout, tokenizer: TextTokenizer, opening: int) -> "Prompts":
        """The prompts of a layout; ``opening`` is the token that every suffix begins with."""
        head, *between = layout.segments
        healed = [tokenizer.encode(gap.prefix.decode()) for gap in layout.gaps[1:]]
        suffixes: list[list[int]] = []
        rest: list[int] = []
        for segment, given in zip(reversed(between), [[], *reversed(healed)], strict=True):
            rest = [*segment, *given, *rest]
            suffixes.insert(0, [opening, *rest])
        return cls([*layout.opening, *head], [list(segment) for segment in between[:-1]], suffixes)


class Suffix:
    """The suffix of one gap as it was read: its track, and how much of what stands in front of it it has seen."""

    def __init__(self, reader: TrackReader) -> None:
        self._reader = reader
        self.track = reader.new()
        self._front: list[int] = []
        self._agreed = 0  # tokens in front that stand since all of it was read, of then so many
        self._num_seen = 0

    @property
    def num_missed(self) -> int:
        """How many tokens in front of it differ from those that the oldest of its tokens have seen."""
        return max(len(self._front), self._num_seen) - self._agreed

    def become(self, ids: Sequence[int], front: Sequence[int], *, near: int) -> None:
        """Stand behind ``front``; ``near`` of its tokens are read anew where that has changed, else none."""
        agreed = common_prefix(self._front, front)
        if (len(front), agreed) == (len(self._front), len(front)) and list(ids) == self.track.ids:
            return
        self._agreed = min(self._agreed, agreed)
        self._front = list(front)
        kept = (
            0
            if self.num_missed > MOST_STALE
            else min(common_prefix(self.track.ids[::-1], ids[::-1]), max(len(ids) - near - 1, 0))
        )
        fresh = len(ids) - kept
        track = self.track
        moved = [*[UNREAD] * fresh, *(track.rows[len(track.rows) - kept :] if kept else [])]
        track.start += len(track.ids) - len(ids)  # where the kept tail would let it begin
        track.ids, track.rows = list(ids), moved
        self._reader.turn(track, len(front))
        if not kept:
            self._agreed = self._num_seen = len(front)


class FimContext:
    """Holds one document's prompt, encoded, and brings it up to date with a layout."""

    def __init__(
        self,
        transformer: Transformer,
        tokenizer: TextTokenizer,
        suffix_id: int,
        dtype: torch.dtype,
        *,
        near: int = NEAR,
    ) -> None:
        self._tokenizer = tokenizer
        self._suffix_id = suffix_id
        self._near = near
        self.reader = TrackReader(transformer, dtype)
        self._head = self.reader.new()
        self._between: list[Track] = []
        self._suffixes: list[Suffix] = []
        self._prompts = Prompts([], [], [])

    @property
    def num_bytes(self) -> int:
        """Memory that the keys and values hold."""
        return self.reader.arena.num_bytes

    def update(self, layout: Layout) -> UpdateCounts:
        """As :meth:`updating`, in one go."""
        return finished(self.updating(layout))

    @torch.inference_mode()
    def updating(self, layout: Layout, *, ahead: bool = False) -> Generator[None, None, UpdateCounts]:
        """Encode what ``layout`` has and the context lacks, with pauses; the last piece is left to the first pass.

        ``ahead`` says that no pass follows: all is encoded, and stale suffixes are read anew.
        """
        self._prompts = prompts = Prompts.of(layout, self._tokenizer, self._suffix_id)
        self._resize(len(prompts.suffixes))
        # What an earlier request wrote at its gaps is not needed any more.
        self.reader.tracks = [self._head, *self._between, *(suffix.track for suffix in self._suffixes)]
        self._head.become(prompts.head, 0)
        self.settle([[]] * len(prompts.between))
        chains = [self.chain(gap) for gap in range(len(self._suffixes))]
        tracks = dict.fromkeys(track for chain in chains for track in chain)
        unread = sum(len(track.unread) for track in tracks)
        total = sum(len(track.ids) for track in tracks)
        rows, rest = (ROWS_AHEAD, 0) if ahead else (CPU_ROWS, CPU_ROWS)
        for left in range(unread, rest, -rows):
            if left < unread:
                yield
            self.reader.read(chains, rows)
        if ahead:
            yield from self._refreshing()
        return UpdateCounts(total=total, encoded=unread)

    def _refreshing(self) -> Generator[None, None, None]:
        """Read stale suffixes anew, each in a track of its own that takes the old one's place once it is complete."""
        for gap, stale in enumerate(self._suffixes):
            if stale.num_missed <= self._near:
                continue
            fresh = Suffix(self.reader)
            *before, _ = self.chain(gap)
            fresh.become(stale.track.ids, [token for track in before for token in track.ids], near=0)
            while fresh.track.unread:
                yield
                self.reader.read([[*before, fresh.track]], ROWS_AHEAD)
            self.reader.drop(stale.track)
            self._suffixes[gap] = fresh

    def settle(self, fills: Sequence[Sequence[int]]) -> None:
        """Let every later gap see what the ones before it became: ``fills`` as tokens, empty where not known yet."""
        front = list(self._head.ids)
        for index, suffix in enumerate(self._suffixes):
            if index:
                between = [*fills[index - 1], *self._prompts.between[index - 1]]
                self._between[index - 1].become(between, len(front))
                front += between
            suffix.become(self._prompts.suffixes[index], front, near=self._near)

    def chain(self, gap: int) -> Chain:
        """The tracks in front of a gap's fill."""
        return [self._head, *self._between[:gap], self._suffixes[gap].track]

    def _resize(self, gaps: int) -> None:
        while len(self._suffixes) > gaps:
            self.reader.drop(self._suffixes.pop().track)
        while len(self._suffixes) < gaps:
            self._suffixes.append(Suffix(self.reader))
        while len(self._between) > max(gaps - 1, 0):
            self.reader.drop(self._between.pop())
        while len(self._between) < gaps - 1:
            self._between.append(self.reader.new())
