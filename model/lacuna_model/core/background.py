"""Work in the background that goes on until it is stopped, whatever goes wrong meanwhile."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from lacuna_model.core.errors import traced

# Seconds after a fault until the work begins again.
PAUSE_S = 1.0

log = logging.getLogger(__name__)


class Background:
    """Work that a daemon thread does again and again. A fault ends one turn of it, is logged, and the next one begins.

    ``stopped`` is set when it has to end. Work may wait for ``wake``, which is set then, too.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.stopped = Event()
        self.wake = Event()
        self.has_failed = False
        self._name = name
        self._work = work
        self._thread: Thread | None = None

    @property
    def is_started(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the work, and wait until its turn has ended."""
        self.stopped.set()
        self.wake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self.stopped.is_set():
            try:
                self._work()
            except Exception as error:  # whatever it is, what it keeps up to date must not stay behind for good
                self.has_failed = True
                log.error("%s failed and begins again:\n%s", self._name, traced(error))
                self.stopped.wait(PAUSE_S)
