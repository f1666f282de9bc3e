"""Types of fields that several request bodies share, with what they may be."""

from typing import Annotated

from msgspec import Meta

from lacuna_model.core.params import MAX_CANDIDATES
from lacuna_server.wire.protocol import ServiceError

MAX_STOPS = 32

# Clients write -1 for any number.
Count = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Candidates = Annotated[int, Meta(ge=1, le=MAX_CANDIDATES)]
Temperature = Annotated[float, Meta(ge=0, le=10)]
Seed = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]  # either sign has room in 64 bits
Milliseconds = Annotated[float, Meta(ge=0, le=1e9)]
# llama.cpp and vLLM take several prompts at once, and clients send one as a list, too.
Prompt = str | list[str]
Stops = str | Annotated[list[str], Meta(max_length=MAX_STOPS)]


def only(prompt: Prompt) -> str:
    """The one prompt of a request; raises ServiceError where there are more or none."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1:
        raise ServiceError("bad_request", f"prompt: {len(prompt)} of them; a request has one")
    return prompt[0]


def limit(given: int | None) -> int | None:
    """How many tokens are wanted; below 0 stands for any number."""
    return None if given is None or given < 0 else given


def stops(given: Stops | None) -> tuple[str, ...]:
    """The stop strings of a request: one, several or none."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def seed(given: int | None) -> int:
    """A seed as the engine takes it; clients write -1 for any."""
    return abs(given or 0)
