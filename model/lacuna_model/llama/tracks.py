"""Reads runs of tokens (tracks) with libllama, into cells of one context that all documents of a model share.

A row attends to the cells of its own sequence at earlier positions. A track keeps a sequence of its own. Before a pass,
each stretch of unread tokens gets another one, into which all that it attends to is copied: a cell may be in many
sequences, so nothing moves. The library requires that a pass continues a sequence where it ends; so tokens behind a gap
in what is read (the fill, where the near suffix is read anew and the far one is not) are a pass of their own.

Tracks change without a notice, as :class:`~lacuna_model.fim.tracks.Track` allows: each read token has a number of its
own in ``rows``, so what was dropped since the last pass is found then, and removed.
"""

import ctypes
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from weakref import WeakSet, finalize

import numpy as np
import torch
from torch import Tensor

from lacuna_model.core.errors import RequestError
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.track import Chain, Track
from lacuna_model.fim.tracks import Places, ReaderRows, TrackReader, chosen_of
from lacuna_model.llama import library as api
from lacuna_model.llama.library import Batch, Library
from lacuna_model.network.arena import PassPart
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.gpu_layers import Digest, PassRead
from lacuna_model.network.transformer import Network

# The library's limit.
SEQUENCES = 256
_NO_CELL_FREE = 1
_Pointer = ctypes.POINTER(ctypes.c_int32)


class Cells:
    """The cells of one context, ``count`` of them; raises MemoryError where the context cannot be made."""

    def __init__(self, library: Library, model: int, *, count: int, threads: int, vocab_size: int) -> None:
        params = library("context_default_params")
        for field, value in (
            *((api.CELLS, count), (api.BATCH, -(-count // 256) * 256), (api.SEQUENCES, SEQUENCES), (api.UNIFIED, True)),
            *((api.THREADS, threads), (api.BATCH_THREADS, threads), (api.WHOLE_WINDOW, True)),
        ):
            params.put(*field, value)
        self._library = library
        self.context: int = library("init_from_model", model, params)
        if not self.context:
            raise MemoryError(f"libllama cannot make a context of {count} tokens ({library.complaint})")
        self.count = int(library("n_ctx", self.context))
        self._memory = library("get_memory", self.context)
        self.can_shift = bool(library("memory_can_shift", self._memory))
        self._vocab_size = vocab_size
        self._free = list(range(min(SEQUENCES, int(library("n_seq_max", self.context))) - 1, -1, -1))
        self.readers = WeakSet["LlamaTracks"]()
        self._passes = 0
        # The sequences of readers that ended in another thread, perhaps beside a pass: the next pass frees them.
        self.dropped = deque[int]()

    def begin(self, readers: Sequence["LlamaTracks"], cells: int) -> None:
        """A pass of some readers begins that needs so many new cells: others give theirs where too few are free.

        Raises RequestError where there are too few whatever the others give.
        """
        self._passes += 1
        while self.dropped:
            self.give([self.dropped.popleft()])
        for reader in readers:
            reader.used = self._passes
        others = sorted((one for one in self.readers if one not in readers), key=lambda one: one.used)
        free = self.count - sum(one.num_cells for one in self.readers)
        while (free < cells or len(self._free) < SEQUENCES // 4) and others:
            given = others.pop(0)
            free += given.num_cells
            given.forget()
        if free < cells:
            raise RequestError(
                f"{cells} more tokens do not fit into the {self.count} that libllama keeps; shorten the text"
            )

    def take(self) -> int:
        """A sequence without cells; raises RequestError where none is left."""
        if not self._free:
            raise RequestError(f"libllama keeps {SEQUENCES} runs of tokens at once, too few for so many gaps")
        return self._free.pop()

    def give(self, sequences: Iterable[int]) -> None:
        """Free sequences with their cells."""
        for sequence in sequences:
            self.memory("seq_rm", sequence, -1, -1)
            self._free.append(sequence)

    def memory(self, name: str, *arguments: int) -> bool:
        """Call ``seq_rm``, ``seq_cp`` or ``seq_add`` of the library's memory; the first returns whether it could."""
        return bool(self._library(f"memory_{name}", self._memory, *arguments))

    def read(self, stretches: Sequence["Stretch"], last: set[Track], states: Tensor) -> None:
        """Read stretches that do not depend on each other, and keep them; the logits of ``last`` tracks go to states.

        Raises RuntimeError where the library fails; then nothing is kept.
        """
        own: list[int] = []
        try:
            for one in stretches:
                own.append(self.take())
                for track in one.before:
                    if track in one.reader.kept:
                        self.memory("seq_cp", one.reader.kept[track].sequence, own[-1], 0, one.first)
            self._decode(stretches, own, last, states)
            for sequence, one in zip(own, stretches, strict=True):
                for track, run in one.runs:
                    first, end = track.start + run[0], track.start + run[-1] + 1
                    self.memory("seq_cp", sequence, one.reader.keep(track, run), first, end)
        finally:
            self.give(own)

    def _decode(
        self, stretches: Sequence["Stretch"], sequences: Sequence[int], last: set[Track], states: Tensor
    ) -> None:
        tokens = [(track, place) for one in stretches for track, run in one.runs for place in run]
        numbers = [number for one, number in zip(stretches, sequences, strict=True) for _ in one.rows]
        count, wanted = len(tokens), [track in last for track, _ in tokens]
        batch = Batch(
            count,
            (ctypes.c_int32 * count)(*(track.ids[place] for track, place in tokens)),
            None,
            (ctypes.c_int32 * count)(*(track.start + place for track, place in tokens)),
            (ctypes.c_int32 * count)(*[1] * count),
            (_Pointer * count)(*(ctypes.pointer(ctypes.c_int32(number)) for number in numbers)),
            (ctypes.c_int8 * count)(*wanted),
        )
        code = self._library("decode", self.context, batch)
        if code:
            why = "no cell is free" if code == _NO_CELL_FREE else self._library.complaint
            raise RuntimeError(f"libllama could not read {count} tokens: {why}")
        for place, row in enumerate(row for one in stretches for row in one.rows):
            if wanted[place]:
                found = self._library("get_logits_ith", self.context, place)
                states[row] = torch.from_numpy(np.ctypeslib.as_array(found, (self._vocab_size,)))


@dataclass(slots=True)
class TrackCells:
    """The cells of a track: their sequence, and the position of each token by its number."""

    sequence: int
    positions: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaPart(PassPart):
    """The part of one reader: the places that it reads of its tracks, the tracks before each, and the last ones."""

    reader: "LlamaTracks"
    places: Places
    before: dict[Track, Chain]
    last: frozenset[Track]


@dataclass(slots=True)
class Stretch:
    """Unread tokens at neighbouring positions: ``runs`` of places in tracks, and their ``rows`` in the pass.

    They are read after all tokens of the tracks ``before`` that are at earlier positions, in the same ``wave`` as
    others that they do not depend on.
    """

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
        stretches, last, offset = list[Stretch](), set[Track](), 0
        for part in parts:
            assert isinstance(part, LlamaPart)
            last |= part.last
            stretches += stretches_of(part, offset)
            offset += part.count
        states = torch.empty((len(ids), self.config.vocab_size), dtype=torch.float32)
        readers = list(dict.fromkeys(one.reader for one in stretches))
        cells = readers[0].cells
        cells.begin(readers, len(ids))
        for wave in range(max(one.wave for one in stretches) + 1):
            cells.read([one for one in stretches if one.wave == wave], last, states)
        return PassRead(states)


def stretches_of(rows: LlamaPart, offset: int) -> list[Stretch]:
    """The stretches of a reader's rows, the first of which is row ``offset`` of the pass.

    Tokens that follow one another in a chain are one stretch. What attends to others that are read is in a later wave.
    """
    found: list[Stretch] = []
    for track, places in rows.places.items():
        chain = [*rows.before[track], track]
        for run in _runs(places):
            own = range(offset, offset + len(run))
            offset = own.stop
            seen = [one for one in found if any(other in chain for other, _ in one.runs)]
            wave = max((one.wave for one in seen), default=-1)
            newest = [one for one in seen if one.wave == wave]
            goes_on = (
                len(newest) == 1
                and newest[0].first + len(newest[0].rows) == track.start + run[0]
                and all(other in chain for other, _ in newest[0].runs)
            )
            if goes_on:
                newest[0].runs.append((track, run))
                newest[0].rows += own
            else:
                found.append(Stretch(rows.reader, chain, [(track, run)], list(own), wave + 1))
    return found


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Runs of neighbouring places, of one at least."""
    cuts = [0, *(i for i, (one, two) in enumerate(pairwise(places), 1) if two != one + 1), len(places)]
    return [list(places[one:two]) for one, two in pairwise(cuts)]


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
        self.used = 0  # the number of the pass that used it last
        self._numbered = 0
        self._sequences: set[int] = set()
        cells.readers.add(self)
        finalize(self, cells.dropped.extend, self._sequences).atexit = False

    @property
    def num_cells(self) -> int:
        """How many cells its tracks keep."""
        return sum(len(kept.positions) for kept in self.kept.values())

    @property
    def num_bytes(self) -> int:
        """Bytes that the keys and values hold."""
        return self.num_cells * self._cell_bytes

    def forget(self) -> None:
        """Free all cells; all tokens are unread."""
        for track in list(self.kept):
            self._forget(track)

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
        present = set(self.tracks)
        for track in list(self.kept):
            if track in present:
                self._match(track)
            else:
                self._free(track)
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
        kept = self.kept.get(track)
        if not by or kept is None:
            return
        if not self.cells.can_shift:
            self._forget(track)
            return
        self.cells.memory("seq_add", kept.sequence, -1, -1, by)
        kept.positions = {number: position + by for number, position in kept.positions.items()}

    def logits(self, hidden: Tensor) -> Tensor:
        """The states are the logits; a copy, because whoever asks for logits may change them."""
        return hidden.clone()

    def keep(self, track: Track, run: Sequence[int]) -> int:
        """Know that a run of a track's places was read; returns the sequence of the track."""
        if track not in self.kept:
            self.kept[track] = TrackCells(self.cells.take(), {})
            self._sequences.add(self.kept[track].sequence)
        numbers = track.rows[run].tolist()
        self.kept[track].positions.update(zip(numbers, (track.start + place for place in run), strict=True))
        return self.kept[track].sequence

    def _match(self, track: Track) -> None:
        """Remove the cells of tokens that are not in a track any more."""
        if (kept := self.kept.get(track)) is None:
            return
        gone = kept.positions.keys() - track.used.tolist()
        for run in _runs(sorted(kept.positions.pop(number) for number in gone)) if gone else ():
            if not self.cells.memory("seq_rm", kept.sequence, run[0], run[-1] + 1):
                self._forget(track)
                return
        if not kept.positions:
            self._free(track)

    def _forget(self, track: Track) -> None:
        track.forget_from(0)
        self._free(track)

    def _free(self, track: Track) -> None:
        sequence = self.kept.pop(track).sequence
        self._sequences.discard(sequence)
        self.cells.give([sequence])
