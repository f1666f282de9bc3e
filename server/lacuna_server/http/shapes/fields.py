"""Types of fields that several request bodies share, with their limits, and the refusal of a field."""

from typing import Annotated

from msgspec import Meta

from lacuna_model.core.params import MAX_CANDIDATES
from lacuna_server.wire.protocol import ErrorCode, ServiceError

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


class FieldError(ServiceError):
    """A ``field`` of a request is wrong or cannot be served; the message of one line names it first."""

    def __init__(self, field: str, why: str, code: ErrorCode = "bad_request") -> None:
        super().__init__(code, f"{field}: {why}")
        self.field = field


def only(prompt: Prompt) -> str:
    """Return the one prompt of a request. Raises FieldError where there are several or none."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1:
        raise FieldError("prompt", f"{len(prompt)} of them; a request has one")
    return prompt[0]
