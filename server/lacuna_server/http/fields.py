"""Types of fields that several request bodies share, with what they may be."""

from typing import Annotated

from msgspec import Meta

from lacuna_model.params import MAX_CANDIDATES

MAX_STOPS = 32

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Candidates = Annotated[int, Meta(ge=1, le=MAX_CANDIDATES)]
Temperature = Annotated[float, Meta(ge=0, le=10)]
Seed = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]  # either sign has room in 64 bits
Milliseconds = Annotated[float, Meta(ge=0, le=1e9)]
Stops = str | Annotated[list[str], Meta(max_length=MAX_STOPS)]


def stops(given: Stops | None) -> tuple[str, ...]:
    """The stop strings of a request: one, several or none."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def seed(given: int | None) -> int:
    """A seed as the engine takes it; clients write -1 for any."""
    return abs(given or 0)
