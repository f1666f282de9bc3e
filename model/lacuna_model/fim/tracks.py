"""Runs of tokens (tracks) in one arena, each read after the tracks before it.

A chain is the sequence of tracks that make up a prompt: head, suffix, fill. A token attends to all tokens of the tracks
before its own, and to its own track up to itself. Chains of several gaps share tracks, so that the text before all gaps
is read once. The order of rows in the arena has no meaning: the rotary position places a row.
"""

import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.network.arena import Arena
from lacuna_model.network.transformer import Part, Transformer

UNREAD = -1
# The time between two pauses of a reading, in seconds, or that of a layer where this takes longer.
PAUSE_S = 0.02
# Unused rows are removed from the arena once there are more than this.
MOST_UNUSED = 256


@dataclass(slots=True, eq=False)
class Track:
    """A run of tokens ``ids``, the first at position ``start``; ``rows`` has the arena row of each, or UNREAD."""

    ids: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    start: int = 0

    def become(self, ids: Sequence[int], start: int) -> int:
        """Replace the tokens and their position; return how many leading ones keep their rows."""
        kept = common_prefix(self.ids, ids) if start == self.start else 0
        self.rows = [*self.rows[:kept], *[UNREAD] * (len(ids) - kept)]
        self.ids, self.start = list(ids), start
        return kept

    def forget_from(self, place: int) -> None:
        """Mark all tokens from a place on as unread."""
        self.rows[place:] = [UNREAD] * (len(self.rows) - place)

    @property
    def unread(self) -> list[int]:
        """The places of tokens that were not read yet."""
        return [place for place, row in enumerate(self.rows) if row == UNREAD]


Chain = Sequence[Track]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a pass that one reader has: their tokens, positions and mask [n, K], and the places in the tracks.

    Without a mask, every row attends to all rows of the arena up to itself.
    """

    ids: list[int]
    positions: list[int]
    mask: Tensor | None
    places: dict[Track, list[int]]

    def part(self, arena: Arena, device: torch.device) -> Part:
        """The rows as a part of a pass on a device."""
        if self.mask is None:
            return Part(len(self.ids), arena, causal=True)
        return Part(len(self.ids), arena, self.mask.to(device))

    def by_track(self, hidden: Tensor) -> dict[Track, Tensor]:
        """Hidden states [n, H] of the rows, by track."""
        sizes = [len(places) for places in self.places.values()]
        return dict(zip(self.places, hidden.split_with_sizes(sizes), strict=True))

    def forget(self) -> None:
        """Mark the tokens as unread, because the pass failed."""
        for track, places in self.places.items():
            for place in places:
                track.rows[place] = UNREAD


@dataclass(slots=True, eq=False)
class Piece:
    """Tokens that are being read layer by layer, for their keys and values alone, into the ``arena_rows``.

    ``shifts`` are the places by which tracks were moved meanwhile: their rows are turned at the end. ``busy_s`` are the
    seconds that it has taken, without the pauses.
    """

    arena_rows: range
    layers: Generator[None, None, None]
    shifts: Counter[Track] = field(default_factory=Counter)
    busy_s: float = 0.0


class TrackReader:
    """Reads tracks into an arena of its own, with one model's weights.

    A piece of a context may be read with pauses (:meth:`reading`). Whoever reads next first ends it.
    """

    def __init__(self, transformer: Transformer, dtype: torch.dtype, costs: PassCosts | None = None) -> None:
        """``costs`` learn what a reading with pauses takes."""
        self._transformer = transformer
        self._costs = costs
        self._device = transformer.final_norm.device
        self.arena = Arena(transformer.config, self._device, dtype)
        self.tracks: list[Track] = []
        self._piece: Piece | None = None

    def new(self) -> Track:
        """An empty track; its rows are kept until it is dropped."""
        track = Track()
        self.tracks.append(track)
        return track

    def drop(self, track: Track) -> None:
        """Free the rows of a track."""
        self.tracks.remove(track)

    def read(self, chains: Sequence[Chain], most: int | None = None) -> dict[Track, Tensor]:
        """Read the unread tokens of the chains in one pass, at most ``most``, those of early tracks first.

        Returns the hidden states [n, H] of the n tokens that were read of each track.
        """
        (found,) = read_together(self._transformer, [(self, chains)], most)
        return found

    def reading(self, chains: Sequence[Chain], most: int) -> Generator[None, None, None]:
        """As :meth:`read`, with pauses; what has been left at a pause is gone on with, and read first."""
        yield from self.ending()
        if (rows := self.next_rows(chains, most)) is None:
            return
        try:
            ids = torch.tensor([rows.ids], device=self._device)
            positions = torch.tensor(rows.positions, device=self._device)
            part = rows.part(self.arena, self._device)
            layers = self._transformer.keep(self._transformer.embed(ids), positions, [part])
        except BaseException:
            rows.forget()
            raise
        self._piece = Piece(range(self.arena.tail, self.arena.tail + len(rows.ids)), layers)
        yield from self.ending()

    def ending(self) -> Generator[None, None, None]:
        """Read the begun piece to its end, with pauses; drop it where no track has its rows any more."""
        if (piece := self._piece) is None:
            return
        if not any(row in piece.arena_rows for track in self.tracks for row in track.rows):
            self._piece = None
            return
        began = time.monotonic()
        try:
            for _ in piece.layers:
                if (took := time.monotonic() - began) >= PAUSE_S:
                    piece.busy_s += took
                    yield
                    began = time.monotonic()
        except Exception:
            self._piece = None
            for track in self.tracks:
                track.rows = [UNREAD if row in piece.arena_rows else row for row in track.rows]
            raise
        self._piece = None
        if self._costs is not None:
            self._costs.saw_reading(len(piece.arena_rows), (piece.busy_s + time.monotonic() - began) * 1e3)
        for track, shift in piece.shifts.items():
            self._turn([row for row in track.rows if row in piece.arena_rows], shift)

    def next_rows(self, chains: Sequence[Chain], most: int | None = None) -> Rows | None:
        """Give arena rows to the unread tokens that :meth:`read` would read; the pass must follow at once.

        None where no token is unread.
        """
        for _ in self.ending():
            pass
        before: dict[Track, Chain] = {}
        for chain in chains:
            for index, track in enumerate(chain):
                before.setdefault(track, chain[:index])
        chosen: dict[Track, list[int]] = {}
        room = sum(len(track.ids) for track in before) if most is None else most
        for track in before:
            if room > 0 and (places := track.unread[:room]):
                chosen[track] = places
                room -= len(places)
        if not chosen:
            return None
        tail = self._make_room()
        count = sum(map(len, chosen.values()))
        self.arena.reserve(tail + count)
        self.arena.head, self.arena.tail = 0, tail
        ids: list[int] = []
        positions: list[int] = []
        for track, places in chosen.items():
            for row, place in enumerate(places, start=tail + len(ids)):
                track.rows[place] = row
            ids += [track.ids[place] for place in places]
            positions += [track.start + place for place in places]
        mask = None if _are_in_order(before, tail + count) else _mask(before, chosen, tail + count)
        return Rows(ids, positions, mask, chosen)

    def turn(self, track: Track, start: int) -> None:
        """Move the read tokens of a track to another position by rotating their keys; no token is read."""
        shift, track.start = start - track.start, start
        piece = self._piece
        later = piece.arena_rows if piece is not None else range(0)
        if piece is not None and any(row in later for row in track.rows):
            piece.shifts[track] += shift
        self._turn([row for row in track.rows if row != UNREAD and row not in later], shift)

    def _turn(self, rows: Sequence[int], shift: int) -> None:
        self._transformer.rotations.turn(self.arena, rows, shift)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [n, V] of hidden states [n, H]."""
        return self._transformer.head(hidden)

    def _make_room(self) -> int:
        """The first row after all used ones; unused rows are first removed where there are many."""
        used = sorted(row for track in self.tracks for row in track.rows if row != UNREAD)
        tail = used[-1] + 1 if used else 0
        if tail - len(used) <= MOST_UNUSED:
            return tail
        order = torch.tensor(used, device=self._device)
        for store in (self.arena.keys, self.arena.values):
            store[:, :, : len(used)] = store[:, :, order].clone()
        moved = {row: place for place, row in enumerate(used)} | {UNREAD: UNREAD}
        for track in self.tracks:
            track.rows = [moved[row] for row in track.rows]
        return len(used)


def read_together(
    transformer: Transformer, wanted: Sequence[tuple[TrackReader, Sequence[Chain]]], most: int | None = None
) -> list[dict[Track, Tensor]]:
    """One pass over what several readers have to read; returns for each what :meth:`TrackReader.read` does."""
    device = transformer.final_norm.device
    rows: list[Rows | None] = []
    try:
        for reader, chains in wanted:
            rows.append(reader.next_rows(chains, most))
        present = [(reader.arena, own) for (reader, _), own in zip(wanted, rows, strict=True) if own is not None]
        if not present:
            return [{} for _ in wanted]
        ids = torch.tensor([[token for _, own in present for token in own.ids]], device=device)
        positions = torch.tensor([position for _, own in present for position in own.positions], device=device)
        parts = [own.part(arena, device) for arena, own in present]
        hidden = transformer.hidden_of(transformer.embed(ids), positions, parts)[0]
    except BaseException:
        for own in rows:
            if own is not None:
                own.forget()
        raise
    found = iter(hidden.split_with_sizes([part.count for part in parts]))
    return [{} if own is None else own.by_track(next(found)) for own in rows]


def _are_in_order(before: dict[Track, Chain], end: int) -> bool:
    """Whether the tracks are one chain, and their tokens so far are the arena's rows up to ``end``, in order."""
    last = next(reversed(before))
    if len(before[last]) < len(before) - 1:
        return False
    return [row for track in before for row in track.rows if row != UNREAD] == list(range(end))


def _mask(before: Mapping[Track, Chain], chosen: Mapping[Track, Sequence[int]], end: int) -> Tensor:
    """The mask [n, end] of the ``chosen`` places of tracks, which have their rows."""
    mask = torch.zeros((sum(map(len, chosen.values())), end), dtype=torch.bool)
    first = 0
    for track, places in chosen.items():
        _show(mask[first : first + len(places)], before[track], track, places)
        first += len(places)
    return mask


def _show(mask: Tensor, before: Chain, track: Track, places: Sequence[int]) -> None:
    """Let the rows [n, K] of a track's ``places`` attend to all tracks ``before`` it, and to their own up to each."""
    earlier = [row for one in before for row in one.rows if row != UNREAD]
    mask[:, torch.tensor(earlier, dtype=torch.long)] = True
    own = [(place, row) for place, row in enumerate(track.rows) if row != UNREAD]
    columns = torch.tensor([row for _, row in own], dtype=torch.long)
    order = torch.tensor([place for place, _ in own])
    mask[:, columns] = order[None] <= torch.tensor(places)[:, None]


def common_prefix(first: Sequence[object], second: Sequence[object]) -> int:
    """The length of the common prefix of two runs of tokens."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(first), len(second)))
