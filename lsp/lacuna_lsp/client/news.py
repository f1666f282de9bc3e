"""The engine's state in the form that clients receive."""

from typing import Any, Literal

import msgspec

State = Literal["starting", "loading", "ready", "lost", "unreachable", "failed"]
Health = Literal["ok", "error"]
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
