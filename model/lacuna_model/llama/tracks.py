"""Reads runs of tokens (tracks) with libllama, into cells of the context that all documents of a model share.

A track keeps one sequence of cells. Tracks change without a notice, as :class:`~lacuna_model.fim.tracks.Track` allows:
each read token has a number of its own in ``rows``, so what was dropped since the last pass is found then, and removed.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from weakref import finalize

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.track import Chain, Track, unread_rows
from lacuna_model.fim.tracks import Places, ReaderRows, TrackReader, chosen_of
from lacuna_model.llama.cells import Cells, Stretch
from lacuna_model.network.arena import PassPart
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.graphs import Digest, PassRead
from lacuna_model.network.transformer import Network


@dataclass(slots=True)
class TrackCells:
    """The cells of a track: their sequence, and the number and position of each token."""

    sequence: int
    numbers: NDArray[np.int64] = field(default_factory=lambda: unread_rows(0))
    positions: NDArray[np.int64] = field(default_factory=lambda: unread_rows(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaPart(PassPart):
    """The part of one reader: the places that it reads of its tracks, the tracks before each, and the last ones."""

    reader: "LlamaTracks"
    places: Places
    before: dict[Track, Chain]
    last: frozenset[Track]


@dataclass(slots=True)
class CellPlan:
    """A stretch of one reader's rows: which places of which tracks it reads, in order, and their rows in the pass."""

    reader: "LlamaTracks"
    before: Chain
    runs: list[tuple[Track, list[int]]]
    rows: list[int]
    wave: int

    @property
    def first(self) -> int:
        """The position of its first token."""
        track, places = self.runs[0]
        return track.start + places[0]

    @property
    def end(self) -> int:
        """The position behind its last token."""
        track, places = self.runs[-1]
        return track.start + places[-1] + 1


class LlamaNetwork(Network):
    """A model that libllama runs: its states are the logits themselves."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.outputs = config.vocab_size
        self.head = lambda states: states

    def read(
        self,
        ids: Sequence[int],
        positions: Sequence[int],
        parts: Sequence[PassPart],
        early: Sequence[bool] = (),
        digest: Digest | None = None,
    ) -> PassRead:
        """Read the rows of some readers; ``states`` [R, V] are the logits, of the last tracks of chains alone."""
        plans, last, offset = list[CellPlan](), set[Track](), 0
        for part in parts:
            assert isinstance(part, LlamaPart)
            last |= part.last
            plans += planned(part, offset)
            offset += part.count
        states = torch.empty((len(ids), self.config.vocab_size), dtype=torch.float32)
        readers = list(dict.fromkeys(plan.reader for plan in plans))
        readers[0].cells.begin(readers, len(ids))
        for wave in range(max(plan.wave for plan in plans) + 1):
            _read([plan for plan in plans if plan.wave == wave], last, states)
        return PassRead(states)


def planned(rows: LlamaPart, offset: int) -> list[CellPlan]:
    """The stretches of a reader's rows, the first of which is row ``offset`` of the pass.

    Tokens that follow one another in a chain are one stretch. What attends to others that are read is in a later wave.
    """
    first, own = dict[Track, int](), offset
    for track, places in rows.places.items():
        first[track] = own
        own += len(places)
    done: dict[tuple[Track, int], int] = {}  # the waves of runs by the track and the run's first place
    plans: list[CellPlan] = []
    for track in sorted(rows.places, key=lambda one: -len(rows.before[one])):
        chain = [*rows.before[track], track]
        open_plan: CellPlan | None = None
        wave = 0
        for index, one in enumerate(chain):
            for run in _runs(rows.places.get(one, ())):
                if (known := done.get((one, run[0]))) is not None:
                    after = known if open_plan is None else max(known, open_plan.wave)
                    wave, open_plan = max(wave, after + 1), None
                    continue
                at = first[one] + rows.places[one].index(run[0])
                where = list(range(at, at + len(run)))
                if open_plan is not None and open_plan.end == one.start + run[0]:
                    open_plan.runs.append((one, run))
                    open_plan.rows += where
                else:
                    wave = wave if open_plan is None else open_plan.wave + 1
                    open_plan = CellPlan(rows.reader, chain[: index + 1], [(one, run)], where, wave)
                    plans.append(open_plan)
                done[one, run[0]] = open_plan.wave
    return plans


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Runs of neighbouring places."""
    if not places:
        return []
    cuts = [0, *(i for i, (one, two) in enumerate(pairwise(places), 1) if two != one + 1), len(places)]
    return [list(places[one:two]) for one, two in pairwise(cuts)]


def _read(plans: Sequence[CellPlan], last: set[Track], states: Tensor) -> None:
    """Read stretches that do not depend on each other, and keep their cells."""
    stretches = list[Stretch]()
    for plan in plans:
        places = [(track, place) for track, run in plan.runs for place in run]
        seen = [plan.reader.kept[track].sequence for track in plan.before if track in plan.reader.kept]
        wanted = [index for index, (track, _) in enumerate(places) if track in last]
        kept = [plan.reader.span_of(track, run) for track, run in plan.runs]
        ids = [track.ids[place] for track, place in places]
        stretches.append(Stretch(plan.first, ids, seen, wanted, kept))
    found = plans[0].reader.cells.read(stretches)
    for plan, stretch, logits in zip(plans, stretches, found, strict=True):
        states[[plan.rows[index] for index in stretch.wanted]] = torch.from_numpy(logits)
        for track, run in plan.runs:
            plan.reader.keep(track, run)


class LlamaTracks(TrackReader):
    """Reads one document's tracks into ``cells``; each pass is whole, without a pause."""

    leaves_out = False

    def __init__(self, network: LlamaNetwork, cells: Cells, cell_bytes: int, costs: PassCosts | None = None) -> None:
        self.device = network.device
        self._network = network
        self.costs = costs or PassCosts()
        self._cell_bytes = cell_bytes
        self.cells = cells
        self.kept: dict[Track, TrackCells] = {}
        self.tracks: list[Track] = []
        self.used = 0
        self._numbered = 0
        self._sequences: set[int] = set()
        cells.join(self)
        finalize(self, cells.drop, self._sequences).atexit = False

    @property
    def num_cells(self) -> int:
        """How many cells its tracks keep."""
        return sum(len(kept.numbers) for kept in self.kept.values())

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values hold."""
        return self.num_cells * self._cell_bytes

    def forget(self) -> None:
        """Free all cells; all tokens are unread."""
        for track in list(self.kept):
            track.forget_from(0)
            self._free(track)

    def reading(self, chains: Sequence[Chain], most: int) -> Generator[None, None, None]:
        """Read the next unread tokens of the chains for their keys and values, without a pause."""
        yield from ()
        rows = self.next_rows([[*chain] for chain in chains], most)
        if rows is None:
            return
        assert isinstance(rows.part, LlamaPart)
        began = perf_counter()
        try:
            self._network.read(rows.ids, rows.positions, [replace(rows.part, last=frozenset())])
        except BaseException:
            rows.forget()
            raise
        self.costs.saw_reading(len(rows.ids), (perf_counter() - began) * 1e3)

    def ending(self) -> Generator[None, None, None]:
        """Nothing is left begun."""
        yield from ()

    def next_rows(self, chains: Sequence[Chain], most: int | None = None) -> ReaderRows | None:
        """The unread tokens that the next pass reads, which must follow at once."""
        self._free_unused()
        before, chosen = chosen_of(chains, most)
        if not chosen:
            return None
        ids = [track.ids[place] for track, places in chosen.items() for place in places]
        positions = [track.start + place for track, places in chosen.items() for place in places]
        for track, places in chosen.items():
            track.place(places, np.arange(self._numbered, self._numbered + len(places)))
            self._numbered += len(places)
        last = frozenset(chain[-1] for chain in chains)
        part = LlamaPart(len(ids), None, reader=self, places=chosen, before=before, last=last)
        return ReaderRows(ids, positions, chosen, part)

    def move_to(self, track: Track, start: int) -> None:
        """Move the read tokens of a track to another position, or forget them where the memory cannot do that."""
        by, track.start = start - track.start, start
        self._match(track)
        if not by or track not in self.kept:
            return
        if not self.cells.can_shift:
            track.forget_from(0)
            self._free(track)
            return
        kept = self.kept[track]
        self.cells.shift(kept.sequence, by)
        kept.positions += by

    def logits(self, hidden: Tensor) -> Tensor:
        """The states are the logits; a copy, because whoever asks for logits may change them."""
        return hidden.clone()

    def span_of(self, track: Track, run: Sequence[int]) -> tuple[int, int, int]:
        """The sequence of a track, and the positions of a run of its places."""
        if track not in self.kept:
            self.kept[track] = TrackCells(self.cells.take())
            self._sequences.add(self.kept[track].sequence)
        first = track.start + run[0]
        return self.kept[track].sequence, first, first + len(run)

    def keep(self, track: Track, run: Sequence[int]) -> None:
        """Know that a run of a track's places was read."""
        kept, places = self.kept[track], np.array(run, dtype=np.int64)
        kept.numbers = np.concatenate((kept.numbers, track.rows[places]))
        kept.positions = np.concatenate((kept.positions, places + track.start))

    def _free_unused(self) -> None:
        """Remove the cells of tokens that are not in the tracks any more."""
        present = set(self.tracks)
        for track in list(self.kept):
            if track not in present:
                self._free(track)
            else:
                self._match(track)

    def _match(self, track: Track) -> None:
        if (kept := self.kept.get(track)) is None:
            return
        gone = ~np.isin(kept.numbers, track.used)
        if not gone.any():
            return
        for run in _runs(sorted(kept.positions[gone].tolist())):
            if not self.cells.remove(kept.sequence, run[0], run[-1] + 1):
                track.forget_from(0)
                self._free(track)
                return
        kept.numbers, kept.positions = kept.numbers[~gone], kept.positions[~gone]
        if not len(kept.numbers):
            self._free(track)

    def _free(self, track: Track) -> None:
        sequence = self.kept.pop(track).sequence
        self._sequences.discard(sequence)
        self.cells.give([sequence])
