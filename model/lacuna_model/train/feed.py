"""Batches drawn ahead of the trainer by worker processes, in an order that their timing cannot change."""

import multiprocessing
import os
import queue
import signal
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Self

from lacuna_model.errors import LacunaError
from lacuna_model.train.batches import Array, Batch, BatchSource

# Batches that a worker has ready at most, and how often each side looks whether the other is alive (seconds).
_AHEAD = 3
_LOOK = 5.0


class FeedError(LacunaError):
    """A worker process that draws batches ended."""


class Feed:
    """Batch ``first``, the next one and so on; worker w of W draws every W-th. No workers: drawn when asked for."""

    def __init__(self, source: BatchSource, first: int, workers: int) -> None:
        self._source = source
        self._number = first
        # Spawned, not forked: the parent holds a device and threads.
        context = multiprocessing.get_context("spawn")
        self._queues = [context.Queue(_AHEAD) for _ in range(workers)]
        self.processes: list[SpawnProcess] = []
        for worker, batches in enumerate(self._queues):
            numbers = (first + (worker - first) % workers, workers)
            process = context.Process(target=_draw_ahead, args=(source, *numbers, os.getpid(), batches), daemon=True)
            process.start()
            self.processes.append(process)

    def next(self) -> Batch[Array]:
        """The next batch; raises what a worker met."""
        number, self._number = self._number, self._number + 1
        if not self._queues:
            return self._source.draw(number)
        worker = number % len(self._queues)
        while True:
            try:
                found: Batch[Array] | LacunaError = self._queues[worker].get(timeout=_LOOK)
            except queue.Empty:
                if self.processes[worker].is_alive():
                    continue
                code = self.processes[worker].exitcode
                raise FeedError(f"worker {worker}, which draws batches, ended with exit code {code}") from None
            if isinstance(found, LacunaError):
                raise found
            return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.terminate()
        for process, batches in zip(self.processes, self._queues, strict=True):
            process.join()
            batches.close()


def _draw_ahead(
    source: BatchSource,
    first: int,
    stride: int,
    parent: int,
    batches: "multiprocessing.Queue[Batch[Array] | LacunaError]",
) -> None:
    # Ctrl-C is for the trainer, which finishes its step first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number = first
    while True:
        try:
            drawn: Batch[Array] | LacunaError = source.draw(number)
        except LacunaError as error:
            drawn = error
        while True:
            try:
                batches.put(drawn, timeout=_LOOK)
                break
            except queue.Full:
                if os.getppid() != parent:  # the trainer was killed
                    os._exit(1)
        if isinstance(drawn, LacunaError):
            return
        number += stride
