"""How the engine is, as clients are told."""

from typing import Any, Literal

import msgspec

State = Literal["starting", "loading", "ready", "lost", "unreachable", "failed"]
Health = Literal["ok", "warning", "error"]
_HEALTH: dict[State, Health] = {"lost": "warning", "unreachable": "error", "failed": "error"}


class News(msgspec.Struct, frozen=True):
    """The engine's state: ``fraction`` (0..1) of a model that is being loaded, ``message`` in words."""

    state: State
    fraction: float = 0.0
    message: str = ""

    def status(self) -> dict[str, Any]:
        """The parameters of ``experimental/serverStatus`` as rust-analyzer has it, and our own beside them."""
        rests = self.state in ("ready", "failed")
        return {"health": _HEALTH.get(self.state, "ok"), "quiescent": rests, **msgspec.to_builtins(self)}
