"""Who makes the present request, and which model the request names.

The guard sets it for the task of a request or connection; the tasks that this one starts inherit it.
"""

from contextvars import ContextVar
from typing import NamedTuple


class Caller(NamedTuple):
    """The name of the user ("" where no users are listed), and of the model ("": the first one)."""

    user: str = ""
    model: str = ""


NOBODY = Caller()
CALLER: ContextVar[Caller] = ContextVar("caller", default=NOBODY)
