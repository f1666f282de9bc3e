"""Types of fields that several request bodies share, with their limits."""

from typing import Annotated

from msgspec import Meta

from lacuna_model.core.params import MAX_CANDIDATES
from lacuna_server.wire.protocol import ServiceError

MAX_STOPS = 256

# Clients write -1 for "no limit".
Count = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Candidates = Annotated[int, Meta(ge=1, le=MAX_CANDIDATES)]
Temperature = Annotated[float, Meta(ge=0, le=10)]
Seed = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]  # the absolute value fits in 64 bits
Milliseconds = Annotated[float, Meta(ge=0, le=1e9)]
# llama.cpp and vLLM take several prompts at once, so some clients send a list of one.
Prompt = str | list[str]
Stops = str | Annotated[list[str], Meta(max_length=MAX_STOPS)]


def only(prompt: Prompt) -> str:
    """Return the one prompt of a request. Raises ServiceError where there are several or none."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1:
        raise ServiceError("bad_request", f"prompt: {len(prompt)} of them; a request has one")
    return prompt[0]


def limit(given: int | None) -> int | None:
    """Return the wanted number of tokens; None, which means the default, where it is absent or negative."""
    return None if given is None or given < 0 else given


def stops(given: Stops | None) -> tuple[str, ...]:
    """Return the stop strings of a request: one, several or none."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def refuse(field: str, given: object, why: str) -> None:
    """Raise ServiceError ``bad_request`` where a client asks by a field for what no fill has.

    None, false, zero and "" ask for nothing.
    """
    if given:
        raise ServiceError("bad_request", f"{field}: {why}; leave the field out")


def seed(given: int | None) -> int:
    """Return a seed for the engine, which is not negative; clients write -1 for any seed."""
    return abs(given or 0)
