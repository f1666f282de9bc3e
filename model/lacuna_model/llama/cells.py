"""The keys and values that one libllama context keeps: cells, and the sequences that say which rows attend to them.

A row attends to the cells of its own sequence at earlier positions. A run of tokens keeps a sequence of its own. Before
a pass, each stretch of unread tokens gets another one, into which all that it attends to is copied: a cell may be in
many sequences, so nothing moves. The library requires that a pass continues a sequence where it ends; so tokens behind
a gap in what is read (the fill, where the near suffix is read anew and the far one is not) are a pass of their own.
"""

import ctypes
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from lacuna_model.core.errors import RequestError
from lacuna_model.llama import library as api
from lacuna_model.llama.library import Batch, Library

# The library's limit.
SEQUENCES = 256
_NO_CELL_FREE = 1


class Keeper(Protocol):
    """What keeps cells between passes: ``used`` is the number of the pass that used it last."""

    used: int

    @property
    def num_cells(self) -> int:
        """How many cells it keeps."""
        ...

    def forget(self) -> None:
        """Free all of them; their tokens are unread then."""
        ...


@dataclass(slots=True)
class Stretch:
    """Tokens at neighbouring positions from ``first`` on, read after all cells of sequences ``seen`` before them.

    ``wanted`` are the places among them whose logits are wanted. ``kept`` says into which sequences which positions go:
    (sequence, first, end).
    """

    first: int
    ids: list[int]
    seen: list[int]
    wanted: list[int]
    kept: list[tuple[int, int, int]]


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
        self.keepers: WeakSet[Any] = WeakSet()
        self._passes = 0
        self._dropped = deque[int]()

    def join(self, keeper: Keeper) -> None:
        """Know one that keeps cells, so that these can be taken from it where another one needs them."""
        self.keepers.add(keeper)

    def begin(self, keepers: Sequence[Keeper], cells: int) -> None:
        """A pass of some keepers begins that needs so many new cells: others give theirs where too few are free.

        Raises RequestError where there are too few whatever the others give.
        """
        self._passes += 1
        while self._dropped:
            self.give([self._dropped.popleft()])
        for keeper in keepers:
            keeper.used = self._passes
        others = sorted((one for one in self.keepers if one not in keepers), key=lambda one: one.used)
        free = self.count - sum(one.num_cells for one in self.keepers)
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
            self._library("memory_seq_rm", self._memory, sequence, -1, -1)
            self._free.append(sequence)

    def drop(self, sequences: Iterable[int]) -> None:
        """Free sequences when the next pass begins: for a keeper that ends in another thread, perhaps beside a pass."""
        self._dropped.extend(sequences)

    def remove(self, sequence: int, first: int, end: int) -> bool:
        """Remove positions from a sequence; returns False where the model's memory cannot."""
        return bool(self._library("memory_seq_rm", self._memory, sequence, first, end))

    def share(self, source: int, target: int, first: int, end: int) -> None:
        """Put the cells of a sequence at some positions into another one, too."""
        if end > first:
            self._library("memory_seq_cp", self._memory, source, target, first, end)

    def shift(self, sequence: int, by: int) -> None:
        """Move all cells of a sequence, which no other one has, to other positions."""
        self._library("memory_seq_add", self._memory, sequence, -1, -1, by)

    def read(self, stretches: Sequence[Stretch]) -> list[NDArray[np.float32]]:
        """Read stretches in one pass; returns the logits [wanted, V] of each.

        Raises RuntimeError where the library fails; then nothing is kept.
        """
        own: list[int] = []
        try:
            for stretch in stretches:
                own.append(self.take())
                for sequence in stretch.seen:
                    self.share(sequence, own[-1], 0, stretch.first)
            logits = self._decoded(stretches, own)
            for sequence, stretch in zip(own, stretches, strict=True):
                for target, first, end in stretch.kept:
                    self.share(sequence, target, first, end)
            return logits
        finally:
            self.give(own)

    def _decoded(self, stretches: Sequence[Stretch], sequences: Sequence[int]) -> list[NDArray[np.float32]]:
        ids = np.array([token for one in stretches for token in one.ids], dtype=np.int32)
        positions = np.concatenate([np.arange(one.first, one.first + len(one.ids)) for one in stretches])
        wanted = np.array([place in one.wanted for one in stretches for place in range(len(one.ids))], dtype=np.int8)
        numbers = np.repeat(np.array(sequences, dtype=np.int32), [len(one.ids) for one in stretches])
        rows = len(ids)
        places = positions.astype(np.int32)
        ones = np.ones(rows, dtype=np.int32)
        pointers = (ctypes.POINTER(ctypes.c_int32) * rows)()
        whole = numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        base = ctypes.addressof(whole.contents)
        for row in range(rows):
            pointers[row] = ctypes.cast(base + 4 * row, ctypes.POINTER(ctypes.c_int32))
        batch = Batch(
            rows,
            ids.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            None,
            places.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            ones.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            pointers,
            wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )
        code = self._library("decode", self.context, batch)
        if code:
            why = "no cell is free" if code == _NO_CELL_FREE else self._library.complaint
            raise RuntimeError(f"libllama could not read {rows} tokens: {why}")
        found, row = list[NDArray[np.float32]](), 0
        for one in stretches:
            logits = np.empty((len(one.wanted), self._vocab_size), dtype=np.float32)
            for index, place in enumerate(one.wanted):
                pointer = self._library("get_logits_ith", self.context, row + place)
                logits[index] = np.ctypeslib.as_array(pointer, (self._vocab_size,))
            found.append(logits)
            row += len(one.ids)
        return found
