"""Work in the background that goes on until it is stopped, whatever goes wrong meanwhile."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from lacuna_model.core.errors import traced

# Seconds after a fault until the work begins again.
PAUSE_S = 1.0

log = logging.getLogger(__name__)


class Background(Thread):
    """Work that a daemon thread does again and again. A fault ends one turn of it, is logged, and the next one begins.

    ``stopped`` is set when it has to end. Work may wait for ``wake``, which is set then, too.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.stopped = Event()
        self.wake = Event()
        self.has_failed = False
        self._work = work

    @property
    def is_started(self) -> bool:
        """Whether the thread was started."""
        return self.ident is not None

    def stop(self) -> None:
        """End the work, and wait until its turn has ended."""
        self.stopped.set()
        self.wake.set()
        if self.is_started:
            self.join()

    def run(self) -> None:
        """Work until it is stopped."""
        while not self.stopped.is_set():
            try:
                self._work()
            except Exception as error:  # whatever it is, what it keeps up to date must not stay behind for good
                self.has_failed = True
                log.error("%s failed and begins again:\n%s", self.name, traced(error))
                self.stopped.wait(PAUSE_S)
