"""Runs of tokens (tracks) in one arena, each read after the tracks before it.

A chain is the sequence of tracks that make up a prompt: head, suffix, fill. A token attends to all tokens of the tracks
before its own, and to its own track up to itself. Chains of several gaps share tracks, so that the text before all gaps
is read once. The order of rows in the arena has no meaning: the rotary position places a row.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model.core.errors import RequestError
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.track import UNREAD, Chain, Track
from lacuna_model.network.arena import NO_ROWS, Arena, MovedKeys, PassPart, SeenRows
from lacuna_model.network.gpu_layers import Digest, PassRead
from lacuna_model.network.transformer import Network, Transformer

T = TypeVar("T")

# The time between two pauses of a reading, in seconds, or that of a layer where this takes longer.
PAUSE_S = 0.02
# Unused rows are removed from the arena once there are more than this.
MAX_UNUSED = 256


Places = Mapping[Track, Sequence[int]]


@dataclass(frozen=True, slots=True)
class ReaderRows:
    """The rows of a pass that one reader has: their tokens, positions, places in the tracks, and what they see."""

    ids: list[int]
    positions: list[int]
    places: Places
    part: PassPart

    def forget(self) -> None:
        """Mark the tokens as unread, because the pass failed."""
        for track, places in self.places.items():
            track.place(places, UNREAD)


@dataclass(slots=True, eq=False)
class ReadingPiece:
    """Tokens that are being read layer by layer, for their keys and values alone, into the ``arena_rows``.

    They are read for the positions that tracks had at the start. ``busy_s`` are the seconds that it has taken, without
    the pauses.
    """

    arena_rows: range
    layers: Generator[None, None, None]
    busy_s: float = 0.0


class TrackReader:
    """Reads tracks into an arena of its own, with one model's weights.

    A piece of a context may be read with pauses (:meth:`reading`). Whoever reads next first ends it. ``leaves_out``:
    some tokens of a context may be left out.
    """

    leaves_out = True
    _network: Network

    def __init__(self, transformer: Transformer, dtype: torch.dtype, costs: PassCosts | None = None) -> None:
        """``costs`` learn what a reading with pauses takes."""
        self._network = self._transformer = transformer
        self.costs = costs or PassCosts()
        self.device = transformer.device
        self.arena = Arena(transformer.config, self.device, dtype)
        self.tracks: list[Track] = []
        self._piece: ReadingPiece | None = None

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values hold."""
        return self.arena.num_bytes

    def new(self, kind: str = "") -> Track:
        """An empty track, whose tokens have the additions of a ``kind``; its rows are kept until it is dropped."""
        track = Track(kind)
        self.tracks.append(track)
        return track

    def drop(self, track: Track) -> None:
        """Free the rows of a track."""
        self.tracks.remove(track)

    def read(self, chains: Sequence[Chain], most: int | None = None) -> dict[Track, Tensor]:
        """Read the unread tokens of the chains in one pass, at most ``most``, those of early tracks first.

        Returns the hidden states [n, H] of the n tokens that were read of each track.
        """
        (found,) = read_together(self._network, [(self, chains)], most)
        return found

    def reading(self, chains: Sequence[Chain], most: int) -> Generator[None, None, None]:
        """As :meth:`read`, with pauses; what has been left at a pause is gone on with, and read first."""
        yield from self.ending()
        if (rows := self.next_rows(chains, most)) is None:
            return
        try:
            ids = torch.tensor([rows.ids], device=self.device)
            positions = torch.tensor(rows.positions, device=self.device)
            layers = self._transformer.keep(self._transformer.embed(ids), positions, [rows.part])
        except BaseException:
            rows.forget()
            raise
        self._piece = ReadingPiece(range(self.arena.tail, self.arena.tail + len(rows.ids)), layers)
        yield from self.ending()

    def ending(self) -> Generator[None, None, None]:
        """Read the begun piece to its end, with pauses; drop it where no track has its rows any more."""
        if (piece := self._piece) is None:
            return
        if not any(_within(track.rows, piece.arena_rows).any() for track in self.tracks):
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
                track.place(_within(track.rows, piece.arena_rows), UNREAD)
            raise
        self._piece = None
        self.costs.saw_reading(len(piece.arena_rows), (piece.busy_s + time.monotonic() - began) * 1e3)

    def next_rows(self, chains: Sequence[Chain], most: int | None = None) -> ReaderRows | None:
        """Give arena rows to the unread tokens that :meth:`read` would read; the pass must follow at once.

        None where no token is unread.
        """
        for _ in self.ending():
            pass
        before, chosen = chosen_of(chains, most)
        if not chosen:
            return None
        tail, arena = self._make_room(), self.arena
        count = sum(map(len, chosen.values()))
        end = tail + count
        arena.reserve(end)
        arena.tail = tail
        arena.moved[tail:end] = 0
        ids = [track.ids[place] for track, places in chosen.items() for place in places]
        positions = [track.start + place for track, places in chosen.items() for place in places]
        first = tail
        for track, places in chosen.items():
            track.place(places, np.arange(first, first := first + len(places)))
        seen = [self._seen_by([*before[track], track], chosen) for track in chosen]
        in_order = _are_in_order(before, end)
        moved = MovedKeys(arena.moved[:end], () if in_order else seen) if arena.has_moved else None
        kinds = [track.kind for track, places in chosen.items() for _ in places] if any(t.kind for t in chosen) else ()
        return ReaderRows(ids, positions, chosen, PassPart(count, arena, None, in_order, seen, moved, kinds))

    def _seen_by(self, chain: Chain, chosen: Places) -> SeenRows:
        """What the ``chosen`` places of a chain's last track attend to; those of all tracks have their rows.

        The tracks before the first with such a place are as the last pass has left them.
        """
        still = next(count for count, track in enumerate(chain) if track in chosen)
        before = chain[still - 1].through(chain[: still - 1], self.arena.listed) if still else NO_ROWS
        own, track = [one.used for one in chain[still:]], chain[-1]
        read = (~track.missing).nonzero()[0]
        ahead = len(before.block) + sum(map(len, own[:-1]))
        counts = ahead + np.searchsorted(read, np.array(chosen[track]), side="right")
        return SeenRows(before, self.arena.listed(np.concatenate(own)), counts)

    def move_to(self, track: Track, start: int) -> None:
        """Move the read tokens of a track to another position; no token is read, and no key is changed."""
        by, track.start = start - track.start, start
        if by and len(track.used):
            self.arena.move(track.used, by)
            track.rows = track.rows.copy()  # what passes know of them is known anew

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [n, V] of hidden states [n, H]."""
        return self._transformer.head(hidden)

    def _make_room(self) -> int:
        """The first row after all used ones; unused rows are first removed where there are many."""
        tail = num_used = 0
        for track in self.tracks:
            tail, num_used = max(tail, track.end), num_used + len(track.used)
        if tail - num_used <= MAX_UNUSED:
            return tail
        used = np.sort(np.concatenate([track.used for track in self.tracks]))
        self.arena.gather(used)
        for track in self.tracks:
            track.place(~track.missing, np.searchsorted(used, track.used))
        return len(used)


def beside_others(run: Callable[[Sequence[T]], None], wanted: T, others: Sequence[T]) -> Sequence[T]:
    """Run a pass for one request and others; where it fails, for that one alone, so that a request's error is its own.

    Returns those of the others that had their part in it.
    """
    try:
        run([wanted, *others])
    except (MemoryError, RuntimeError, RequestError):
        if not others:
            raise
        run([wanted])
        return ()
    return others


class Together:
    """The unread tokens of several readers as the rows of one pass."""

    def __init__(self, rows: Sequence[ReaderRows | None]) -> None:
        self._rows = rows
        self._present = [one for one in rows if one is not None]

    @classmethod
    @contextmanager
    def of(cls, wanted: Iterable[tuple[TrackReader, Sequence[Chain]]], most: int | None = None) -> Iterator["Together"]:
        """At most ``most`` of each reader; within, the pass must follow. Where it fails, they are unread again."""
        rows: list[ReaderRows | None] = []
        try:
            for reader, chains in wanted:
                rows.append(reader.next_rows(chains, most))
            yield cls(rows)
        except BaseException:
            for one in filter(None, rows):
                one.forget()
            raise

    def __len__(self) -> int:
        """How many rows the pass has."""
        return sum(len(rows.ids) for rows in self._present)

    @property
    def masks(self) -> int:
        """How many of the rows are mask rows."""
        return sum(token < 0 for rows in self._present for token in rows.ids)

    def spans(self) -> list[dict[Track, slice]]:
        """The rows of the pass that are each reader's, by track."""
        found, first = list[dict[Track, slice]](), 0
        for rows in self._rows:
            found.append({})
            for track, places in rows.places.items() if rows is not None else ():
                found[-1][track] = slice(first, first := first + len(places))
        return found

    def read(self, transformer: Network, early: Sequence[bool] = (), digest: Digest | None = None) -> PassRead:
        """The pass over at least one row: :meth:`.Network.read`."""
        ids = [token for rows in self._present for token in rows.ids]
        positions = [position for rows in self._present for position in rows.positions]
        return transformer.read(ids, positions, [rows.part for rows in self._present], early, digest)


def read_together(
    transformer: Network, wanted: Sequence[tuple[TrackReader, Sequence[Chain]]], most: int | None = None
) -> list[dict[Track, Tensor]]:
    """One pass over what several readers have to read; returns for each what :meth:`TrackReader.read` does."""
    with Together.of(wanted, most) as together:
        if not len(together):
            return [{} for _ in wanted]
        states = together.read(transformer).states
    return [{track: states[span] for track, span in own.items()} for own in together.spans()]


def chosen_of(chains: Sequence[Chain], most: int | None) -> tuple[dict[Track, Chain], dict[Track, list[int]]]:
    """The tracks before each track of the chains, and the unread places to read, at most ``most``, of early ones first.

    Tracks are in the order of the chains.
    """
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
    return before, chosen


def _within(rows: NDArray[np.int64], some: range) -> NDArray[np.bool_]:
    """Which of the rows are among some neighbouring ones."""
    return (rows >= some.start) & (rows < some.stop)


def _are_in_order(before: dict[Track, Chain], end: int) -> bool:
    """Whether the tracks are one chain, and their tokens so far are the arena's rows up to ``end``, in order."""
    last = next(reversed(before))
    if len(before[last]) < len(before) - 1:
        return False
    rows = 0
    for track in before:
        if not track.follows(rows):
            return False
        rows += len(track.used)
    return rows == end
