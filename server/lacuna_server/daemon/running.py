"""Runs the service on a listening socket, and ends it without losing an answer; its log has one line per event.

The log is in logfmt, and contains no text that users type.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import structlog

from lacuna_model.hub.atomic import replacing
from lacuna_server.client import lifecycle
from lacuna_server.service.own_first import OwnFirst, is_private
from lacuna_server.service.service import Service
from lacuna_server.wire.config import ServerConfig, is_loopback
from lacuna_server.worker import streams

log = structlog.get_logger(__name__)

ENDING = (signal.SIGTERM, signal.SIGINT)
IDLE_CHECK_S = 1.0
SWITCH_S = 0.001
TURN_OVER_BYTES = 1_000_000


def run(config: ServerConfig, listeners: Sequence[socket.socket], url: str, token: str, before: Sequence[str]) -> None:
    """Serve until a signal or idleness ends it.

    ``token`` is that of this user's own clients; ``before`` are the signals that have asked for the end already.
    """
    configure_log(Path(config.log_file) if config.log_file else None)
    selector = OwnFirst()
    for listener in listeners:
        if not is_private(listener):
            selector.set_apart(listener.fileno())

    def loop() -> asyncio.AbstractEventLoop:
        if sys.platform == "win32":  # a loop by selectors could not start the model's process there
            return asyncio.ProactorEventLoop()
        return Loop(selector, config.head_timeout_s)

    async def serve() -> None:
        # Other threads parse long messages; the event loop waits for this long at most until it goes on.
        sys.setswitchinterval(SWITCH_S)
        with _signals(before) as asked:  # before anybody is told that the service runs, and may want to end it
            announce(url, config)
            service = Service(config)
            service.model.start()
            # The model's process starts while the modules of the web server are being loaded.
            app = await asyncio.to_thread(import_module, "lacuna_server.daemon.app")
            server = app.web_server(app.build(service, token), config, selector)
            serving = asyncio.create_task(server.serve(sockets=list(listeners)))
            log.info("ending", reason=await _until_asked_to_end(service, serving, asked))
        await service.close()
        server.should_exit = True
        await serving

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(serve())


class Loop(asyncio.SelectorEventLoop):
    """The event loop of the service. A connection with TLS has to begin within ``handshake_s`` seconds (0: 60).

    Before that, no guard knows of it.
    """

    def __init__(self, selector: OwnFirst, handshake_s: float) -> None:
        super().__init__(selector)
        self._handshake_s = handshake_s or None

    async def create_server(self, *where: Any, ssl: Any = None, **how: Any) -> Any:
        """Listen, as of asyncio."""
        if ssl is not None:
            how["ssl_handshake_timeout"] = self._handshake_s
        return await super().create_server(*where, ssl=ssl, **how)


def announce(url: str, config: ServerConfig) -> None:
    """Say in the log, and on a terminal, where the service is to be reached."""
    log.info("serving", url=url, pid=os.getpid(), model=config.model)
    if sys.stderr.isatty():
        greet(url, config)
    if not config.cert and not is_loopback(config.host):
        log.warning("unencrypted", host=config.host, mend="set --cert and --key, or use a TLS proxy")


def greet(url: str, config: ServerConfig) -> None:
    """Tell who started the service on a terminal where the playground is, as a link, and how the service ends."""
    from rich.console import Console
    from rich.text import Text

    token = "?token=…" if config.token else ""
    line = Text.assemble("Playground: ", (f"{url}/", f"bold link {url}/"), f"{token} (Ctrl-C stops)")
    Console(stderr=True).print(line, soft_wrap=True)


@contextmanager
def _signals(before: Sequence[str]) -> Iterator[asyncio.Queue[str]]:
    """Queue the names of the signals that ask for the end; after it a signal ends the process at once.

    Those ``before`` may still grow until the handlers are set.
    """
    loop, asked = asyncio.get_running_loop(), asyncio.Queue[str]()

    def ask(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(asked.put_nowait, signal.Signals(number).name)

    for number in ENDING:
        signal.signal(number, ask)
    for name in before:
        asked.put_nowait(name)
    try:
        yield asked
    finally:
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)


async def _until_asked_to_end(service: Service, serving: asyncio.Task[None], asked: asyncio.Queue[str]) -> str:
    """Wait for the first signal, idleness or a failure of the server, and return which it was."""
    while not serving.done():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_CHECK_S):
                return await asked.get()
        if lifecycle.is_asked_to_end():
            return "stop"
        if 0 < service.config.idle_exit_s < service.idle_s:
            return "idle"
        if service.config.log_file:
            turn_log_over(Path(service.config.log_file))
    return "failed"


def configure_log(file: Path | None = None) -> None:
    """Log every event with time and level, to a file or to stderr. Raises OSError where the file cannot be opened."""
    if file is not None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):  # the model process inherits them and prints there too
            os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    streams.unhurried()
    log_to_stderr()


def log_to_stderr() -> None:
    """Log every event with time and level to stderr, with what is bound to the present request."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _printable,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


def _printable(logger: object, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape control characters in what an event says: clients choose some of it, and terminals obey them."""
    return {
        name: "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in value)
        if isinstance(value, str) and not value.isprintable()
        else value
        for name, value in event.items()
    }


def turn_log_over(file: Path) -> None:
    """If a log is long, copy it to ``.old.log`` and truncate it in place, because several processes have it open."""
    with contextlib.suppress(OSError):
        if file.stat().st_size < TURN_OVER_BYTES:
            return
        # On a full disk there is no copy, but truncating makes room.
        with (
            contextlib.suppress(OSError),
            file.open("rb") as log,
            replacing(file.with_suffix(".old.log"), private=True) as old,
        ):
            shutil.copyfileobj(log, old)
        os.truncate(file, 0)
