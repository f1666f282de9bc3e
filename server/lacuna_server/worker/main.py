"""The model worker, a separate process: interleaves its requests, one denoising step at a time."""

import gc
import os
import pkgutil
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from lacuna_model.core.errors import LacunaError, RequestError, traced
from lacuna_model.core.params import InfillResult
from lacuna_model.hub import machine
from lacuna_server.wire import frames
from lacuna_server.wire.frames import FromWorker, Setup, Submission
from lacuna_server.wire.protocol import ErrorCode
from lacuna_server.worker import streams

if TYPE_CHECKING:
    from lacuna_model.engine import Engine, Steps

# Requests that are not preferred wait so long for their first step, and have so much of the time beside others.
OTHERS_WAIT_S, OTHERS_SHARE = 0.25, 1 / 4
# A preferred request that began so lately is not interrupted by them, unless they have waited for so long.
FRESH_S, PATIENCE_S = 0.25, 1.0
IDLE_S = 5.0  # without a request, before free memory goes back to the system: that takes some tenths of a second


def load_engine(setup: Setup, report: Callable[[float, str], None]) -> "Engine":
    """Load the engine with the model that ``setup`` names. Raises LacunaError where that fails."""
    report(0.0, "loading torch")
    from lacuna_model.engine import Engine

    report(0.4, f"loading {setup.config.model}")
    return Engine.load(setup.config.model, **setup.config.of_engine)


@dataclass(slots=True)
class Work:
    """A running request, with its monotonic time of arrival, and the seconds and steps it has taken so far."""

    id: int
    submission: Submission
    stream: "Steps"
    began: float
    busy_s: float = 0.0
    steps: int = 0


class Worker:
    """Takes one step of each request in turn, and handles arrived messages before each step.

    An error ends its request alone; but where memory runs out, ``run`` raises it, once the request is refused.

    While there are preferred requests, the others together have a quarter of the time: so each of them ends. But
    one that has just begun, as a key asks for, is not interrupted by them unless they wait for ``PATIENCE_S``.

    Requests may share a forward pass of the model: it counts as time of the one whose step made it.
    """

    def __init__(
        self,
        engine: "Engine",
        inbox: "queue.SimpleQueue[bytes | None]",
        send: Callable[[FromWorker], None],
        *,
        log_code: bool = False,
    ) -> None:
        self._engine = engine
        self._inbox = inbox
        self._send = send
        self._log_code = log_code
        self._turns: deque[Work] = deque()
        self._others_due = 0.0  # the monotonic time from which a request that is not preferred has the next turn

    def run(self) -> None:
        """Work until the server closes its end of the pipe."""
        while self._take_in():
            if self._turns:
                self._step(self._next())

    def _next(self) -> Work:
        """Take the request whose turn it is."""
        now = time.monotonic()
        fresh = any(work.submission.preferred and now < work.began + FRESH_S for work in self._turns)
        others = now > self._others_due + PATIENCE_S * fresh
        work = next((work for work in self._turns if work.submission.preferred is not others), self._turns[0])
        self._turns.remove(work)
        return work

    def _take_in(self) -> bool:
        """Handle all messages that have arrived; wait for one while no request runs. Return False at the end."""
        while True:
            try:
                body = self._inbox.get(block=False) if self._turns else self._await()
            except queue.Empty:
                return True
            if body is None:
                return False
            match frames.TO_WORKER.decode(body):
                case frames.Start(id=id, submission=submission):
                    if all(work.submission.preferred for work in self._turns):
                        self._others_due = time.monotonic() + OTHERS_WAIT_S
                    stream = self._engine.stream(submission.request, document="\0".join(submission.key))
                    self._turns.append(Work(id, submission, stream, time.monotonic()))
                case frames.Stop(id=id):
                    for work in [work for work in self._turns if work.id == id]:
                        self._turns.remove(work)
                        work.stream.close()
                        self._send(frames.Stopped(id, work.busy_s, work.steps))

    def _await(self) -> bytes | None:
        """Wait for a message while no request runs; after ``IDLE_S`` seconds give free memory back to the system."""
        try:
            return self._inbox.get(timeout=IDLE_S)
        except queue.Empty:
            machine.give_back_freed()
            return self._inbox.get()

    def _step(self, work: Work) -> None:
        began = time.monotonic()
        ending: InfillResult | Exception | None = None
        try:
            snapshot = next(work.stream)
        except StopIteration as end:
            ending = end.value
        except Exception as error:  # an error in one request must not end the others
            ending = error
        took = time.monotonic() - began
        work.busy_s += took
        if not work.submission.preferred:
            self._others_due = began + took / OTHERS_SHARE
        if ending is None:
            work.steps += 1
            self._turns.append(work)
            self._send(frames.Stepped(work.id, snapshot if work.submission.snapshots else None))
        elif isinstance(ending, InfillResult):
            self._send(frames.Done(work.id, work.busy_s, work.steps, ending))
        else:
            self._send(frames.Refused(work.id, work.busy_s, work.steps, *_reason(ending)))
            if machine.ran_out(ending) or not isinstance(ending, LacunaError):
                self._log(ending)
            if machine.ran_out(ending):
                raise ending  # what was allocated is in no known state

    def _log(self, error: Exception) -> None:
        """Print a traceback on stderr. The exception's message may quote code: it is shown only if ``log_code``."""
        words = str(error) if self._log_code else "(set log_code to see its message)"
        print(f"{traced(error)}: {words}", file=sys.stderr, flush=True)


def _reason(error: Exception) -> tuple[ErrorCode, str]:
    """Return the code and the line that a client is told of an error."""
    if machine.ran_out(error):
        return "internal", "the memory of the machine did not suffice for this request; the model is started again"
    if isinstance(error, LacunaError):  # it says in one line what it is about
        return "bad_request" if isinstance(error, RequestError) else "internal", str(error)
    return "internal", f"the engine failed with {type(error).__name__}; the service's log has the details"


def main() -> None:
    """Read frames from stdin and write frames to stdout, until stdin ends or an allocation fails."""
    try:
        _serve()
    except Exception as error:
        if not machine.ran_out(error):
            raise
        os._exit(frames.NO_MEMORY)  # at once: an end in order needs memory, too


def _serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Windows sends Ctrl-C to every process of a console
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    # A library may print to stdout, and a compiler that it starts may read stdin: neither may touch the frames.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    streams.unhurried()
    inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    threading.Thread(target=_pump, args=(requests, inbox), daemon=True).start()

    def send(message: FromWorker) -> None:
        frame = memoryview(frames.encode(message))
        while frame:
            frame = frame[replies.write(frame) :]

    first = inbox.get()
    if first is None:
        return
    try:
        setup = frames.TO_WORKER.decode(first)
    except ValueError as error:  # an update while the service runs
        return send(frames.Failed(f"the service that runs is of another version; `lacuna stop` ends it ({error})"))
    assert isinstance(setup, Setup)
    try:
        factory = pkgutil.resolve_name(setup.config.engine)
        engine = factory(setup, lambda fraction, detail: send(frames.Loading(fraction, detail)))
    except (LacunaError, ImportError, AttributeError, ValueError, OSError) as error:
        if machine.ran_out(error):
            raise
        send(frames.Failed(str(error)))
        return
    # The loaded model stays for good: without this, full collections scan it, which can take 0.9 s.
    gc.freeze()
    gc.enable()
    config = setup.config
    send(frames.Ready(config.model, getattr(engine, "follows_edits", False), getattr(engine, "positions", 0)))
    Worker(engine, inbox, send, log_code=config.log_code).run()


def _pump(stream: BinaryIO, inbox: "queue.SimpleQueue[bytes | None]") -> None:
    """Read frames as they arrive, so that the server never waits for the end of a step."""
    while True:
        body = frames.read(stream)
        inbox.put(body)
        if body is None:
            return
