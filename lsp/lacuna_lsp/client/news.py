"""The engine's state in the form that clients receive."""

from typing import Any, Literal

import msgspec

State = Literal["starting", "loading", "ready", "lost", "unreachable", "failed"]
Health = Literal["ok", "warning", "error"]
_HEALTH: dict[State, Health] = {"lost": "warning", "unreachable": "error", "failed": "error"}


class News(msgspec.Struct, frozen=True):
    """The engine's state: ``fraction`` (0..1) of the model that is loaded, and ``message`` for the user."""

    state: State
    fraction: float = 0.0
    message: str = ""

    def status(self) -> dict[str, Any]:
        """Returns the parameters of ``experimental/serverStatus``: rust-analyzer's fields and Lacuna's own."""
        rests = self.state in ("ready", "failed")
        return {"health": _HEALTH.get(self.state, "ok"), "quiescent": rests, **msgspec.to_builtins(self)}
