"""The engine's state in the form that clients receive, and progress bars.

One is shown while the model loads, and a message when something fails.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import msgspec
from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

from lacuna_lsp.client.client_session import CancelledByUserError, ClientSession
from lacuna_lsp.client.protocol import STATUS

State = Literal["starting", "loading", "ready", "lost", "unreachable", "failed"]
Health = Literal["ok", "error"]
Report = Callable[[str, float], None]
TITLE = "Lacuna"
AT_ONCE_S = 0.7  # an engine that starts faster shows no progress before it loads its model
# What the user can do about a state that is an error.
_ADVICE: dict[State, str] = {
    "lost": "Lacuna connects again by itself; `lacuna status` in a terminal says whether the engine runs",
    "unreachable": "start the engine with `lacuna serve`, or correct the address after --engine",
    "failed": "`lacuna doctor` on the engine's machine says how to repair it; then open a file again",
}


class News(msgspec.Struct, frozen=True):
    """The engine's state: ``fraction`` (0..1) of the model that is loaded, and ``message`` for the user."""

    state: State
    fraction: float = 0.0
    message: str = ""

    def status(self) -> dict[str, Any]:
        """Returns the parameters of ``experimental/serverStatus``: rust-analyzer's fields and Lacuna's own."""
        health: Health = "error" if self.state in _ADVICE else "ok"
        rests = self.state in ("ready", "failed")
        advice = _ADVICE.get(self.state, "")
        return {"health": health, "quiescent": rests, "advice": advice, **msgspec.to_builtins(self)}


class LoadingProgress:
    """Shows the changes of the engine's state to one client."""

    def __init__(self, server: LanguageServer, session: ClientSession) -> None:
        self._server = server
        self._session = session
        self._changed = asyncio.Event()
        self._bar: asyncio.Task[None] | None = None
        self._outages = 0
        self._heard = News("starting")
        self._nothing = ""
        self._held = False
        self._end_of_snooze: asyncio.TimerHandle | None = None

    def hear(self, news: News) -> None:
        """Takes the engine's current state, and sends it to clients that accept status notifications."""
        self._heard = news
        self._changed.set()
        self.notify()
        if news.state in ("starting", "loading"):
            self._bar = self._bar or asyncio.create_task(self._show())
            return
        self._hide()
        if news.state == "lost":
            self._outages += 1
            self._session.say_once(f"The connection to the engine broke; it is tried again ({self._outages}).")
        elif news.state in ("unreachable", "failed"):
            self._session.say_once(f"No engine: {news.message}")

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.cancel()
        self._bar = None

    async def _show(self) -> None:
        """Shows a bar until cancelled, if the engine does not start at once."""
        if self._heard.state == "starting":
            await asyncio.sleep(AT_ONCE_S)
        with suppress(CancelledByUserError):  # the loading goes on without the bar
            async with working(self._server, TITLE, button=False) as report:
                while True:
                    self._changed.clear()
                    report(self._heard.message or "the engine starts", self._heard.fraction)
                    await self._changed.wait()

    def answered(self, nothing: str) -> None:
        """Takes why the user's last request for suggestions got none, "" if it got some, for the same clients."""
        before, self._nothing = self._nothing, nothing
        if nothing or before:
            self.notify(nothing)

    def withheld(self, held: bool) -> None:
        """Takes whether the last suggestion was held back as unsure, for the same clients."""
        if held != self._held:
            self._held = held
            self.notify()

    def snoozed(self) -> None:
        """Takes in that suggestions are snoozed or go on, for the same clients, which are told of its end, too."""
        if self._end_of_snooze is not None:
            self._end_of_snooze.cancel()
        if seconds := self._session.snoozed_s:
            self._end_of_snooze = asyncio.get_running_loop().call_later(seconds, self.notify)
        self.notify()

    def close(self) -> None:
        """Shows and tells nothing any more."""
        self._hide()
        if self._end_of_snooze is not None:
            self._end_of_snooze.cancel()

    def status(self) -> dict[str, Any]:
        """Returns the parameters of the notification."""
        settings = self._session.settings
        on = {"enabled": settings.enabled, "automatic": settings.automatic, "snoozedS": self._session.snoozed_s}
        return {**self._heard.status(), **on, "nothing": self._nothing, "held": int(self._held)}

    def notify(self, nothing: str = "") -> None:
        """Sends the state; ``nothing`` is told once, with the answer that it is about."""
        if has_experimental(self._server, "serverStatusNotification"):
            self._server.protocol.notify(STATUS, {**self.status(), "nothing": nothing})


def has_experimental(server: LanguageServer, name: str) -> bool:
    """Whether the client declares a capability that LSP does not have, as rust-analyzer's clients do."""
    declared = server.client_capabilities.experimental
    return isinstance(declared, Mapping) and bool(declared.get(name))


@asynccontextmanager
async def working(
    server: LanguageServer, title: str, *, button: bool = True, shares: bool = True
) -> AsyncIterator[Report]:
    """Shows progress during a piece of work; yields a function that takes a message and a share in 0..1.

    ``button``: the client shows one that cancels the work. ``shares``: shares will be told. Raises CancelledByUserError
    if the user cancels.
    """
    if not get_capability(server.client_capabilities, "window.work_done_progress"):
        yield lambda message, share: None
        return
    progress, token, task = server.work_done_progress, uuid.uuid4().hex, asyncio.current_task()
    await progress.create_async(token)
    progress.begin(token, types.WorkDoneProgressBegin(title, cancellable=button, percentage=0 if shares else None))
    cancelled = progress.tokens[token]
    if task is not None:
        cancelled.add_done_callback(lambda done: task.cancel() if done.cancelled() else None)

    def report(message: str, share: float) -> None:
        progress.report(token, types.WorkDoneProgressReport(message=message, percentage=round(100 * share)))

    try:
        yield report
    except asyncio.CancelledError:
        if cancelled.cancelled() and task is not None:
            task.uncancel()
            raise CancelledByUserError(f"{title}: cancelled, nothing was edited") from None
        raise
    finally:
        progress.end(token, types.WorkDoneProgressEnd())
        progress.tokens.pop(token, None)
