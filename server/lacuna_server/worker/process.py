"""The model of this machine: a scheduler with the one worker process that it keeps running.

The process is started again after a crash, and where it hangs.
"""

import asyncio
import contextlib
import math
import sys
import time

import msgspec
import structlog

from lacuna_server.wire import frames
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.frames import Failed, Ready, Setup, ToWorker
from lacuna_server.worker.scheduler import Scheduler

log = structlog.get_logger(__name__)

# After so many failed starts in a row there is no further attempt.
MAX_FAILED_STARTS = 3
MAX_DOUBLINGS = 10
# The time in which a worker has to end that has closed its output, or whose requests have ended.
GRACE_S = 2.0
WATCH_S = 1.0

NO_MEMORY = "the model process ran out of memory"
# Signals that end a process, also where memory runs out: of the system, and of libraries that cannot do without.
SIGNALS = {-9: " (killed, as where memory runs out)", -6: " (aborted, as where memory runs out)"}
GONE = "it was there before: put it back, and the next request tries again, or choose another model (lacuna setup)"


# Before a restart, after the first, which is immediate; doubled at each, until a process has been ready for CALM_S.
FIRST_PAUSE_S, LONGEST_PAUSE_S, CALM_S = 0.5, 30.0, 60.0


class OwnModel(Scheduler):
    """The model of this machine, in one worker process that is kept running until it is stopped."""

    reads_workspaces = True

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config, self.send)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._ready_since: float | None = None
        self._was_ready = False
        self._num_ends = 0  # since the last process that was ready for CALM_S
        self._next_start = 0.0
        self._last_heard = time.monotonic()

    @property
    def pid(self) -> int | None:
        """The id of the running process."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the process, keep one running, and watch it."""
        self._tasks = [asyncio.create_task(self._keep_running()), asyncio.create_task(self._watch())]

    def retry(self) -> None:
        """Try again to load a model that could not be loaded."""
        if self.status().state == "failed":
            self._tell("loading", 0.0)
            self._tasks[0] = asyncio.create_task(self._keep_running())

    def send(self, message: ToWorker) -> None:
        """Send a message to the process. If it has just ended the message is lost, and ``crashed`` follows."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(frames.encode(message))

    def kill(self) -> None:
        """Kill the process; this counts as a crash."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def stop(self) -> None:
        """End the process for good."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:  # the cancellation may have met the end of a process that was not waited for yet
            self.kill()
            await self._process.wait()

    async def _watch(self) -> None:
        """Kill a worker that has work and has sent nothing for ``worker_timeout_s``; it is then restarted."""
        while True:
            await asyncio.sleep(WATCH_S)
            begun = [ticket.started or 0.0 for ticket in self._running.values()]
            silent_s = time.monotonic() - max(self._last_heard, min(begun, default=math.inf))
            if silent_s > self._config.worker_timeout_s > 0:
                self.kill()
                log.error("worker_stuck", silent_s=round(silent_s, 1))

    async def _keep_running(self) -> None:
        failed_starts = 0
        while True:
            await asyncio.sleep(self._next_start - time.monotonic())
            fault: Exception | None = None
            last: Ready | Failed | None = None
            try:
                last, code = await self._run_once()
                ended = f"the model process ended with code {code}{SIGNALS.get(code, '')}"
                detail = NO_MEMORY if code == frames.NO_MEMORY else ended
            except TimeoutError:
                detail = (
                    f"the model process sent nothing for {self._config.load_timeout_s:g} s while it loaded the model"
                )
            except OSError as error:
                detail, fault = f"the model process cannot be started: {error.strerror or error}", error
            except Exception as error:  # a fault on this side: without a restart no waiting request would be answered
                detail, fault = "the model process sent a message that cannot be read", error
            pause_s = self._pause()
            if isinstance(last, Failed):
                return self.failed(f"{last.message}; {GONE}" if self._was_ready else last.message)
            failed_starts = 0 if isinstance(last, Ready) else failed_starts + 1
            if failed_starts == MAX_FAILED_STARTS:
                less = "; close other programs, or choose a smaller model (lacuna setup)"
                advice = less if detail == NO_MEMORY else ""
                tries = f"{failed_starts} times in a row"
                return self.failed(f"{detail} while it loaded the model, {tries}{advice}")
            again = f", {self._num_ends} times in a row, and is started again in {pause_s:g} s" if pause_s else ""
            self.crashed(detail, again)
            log.error("worker_crashed", detail=detail, pause_s=pause_s, exc_info=fault)

    def _pause(self) -> float:
        """Count an ended process, and return the seconds to wait before the next start."""
        now = time.monotonic()
        if self._ready_since is not None and now - self._ready_since > CALM_S:
            self._num_ends = 0
        self._ready_since = None
        self._num_ends += 1
        doublings = min(self._num_ends - 2, MAX_DOUBLINGS)
        pause_s = min(FIRST_PAUSE_S * 2**doublings, LONGEST_PAUSE_S) if doublings >= 0 else 0.0
        self._next_start = now + pause_s
        return pause_s

    async def _run_once(self) -> tuple[Ready | Failed | None, int]:
        """Run one process to its end. Return its Ready or Failed message (None: it sent neither) and its exit code.

        Raises TimeoutError where it sends nothing for too long while it loads.
        """
        # Isolated as this process is, and never importing from the current folder: a workspace may have a json.py.
        isolation = "-I" if sys.flags.isolated else "-P"
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, isolation, "-m", "lacuna_server.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal is for the service, which ends this process
        )
        assert process.stdin is not None
        assert process.stdout is not None
        last: Ready | Failed | None = None
        try:
            self.send(Setup(msgspec.structs.replace(self._config, token="")))
            while True:
                async with asyncio.timeout(self._config.load_timeout_s or None if last is None else None):
                    body = await frames.receive(process.stdout)
                if body is None:
                    break
                self._last_heard = time.monotonic()
                message = frames.FROM_WORKER.decode(body)
                if isinstance(message, Ready | Failed):
                    last = message
                if isinstance(message, Ready):
                    self._ready_since, self._was_ready = self._last_heard, True
                if not isinstance(message, Failed):
                    self.heard(message)
        finally:
            process.stdin.close()
            # It ends by itself, and writes its last log lines. ``kill`` would reap it before asyncio does, and its exit
            # code would be lost.
            if isinstance(last, Ready) or process.stdout.at_eof():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GRACE_S):  # ``wait_for`` of Python 3.11 may lose a cancellation
                        await process.wait()
            self.kill()
            await process.wait()
        return last, await process.wait()
