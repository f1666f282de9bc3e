"""The audit log: one line for each refusal, without any text of a user.

``structlog`` adds what the guard has bound to the request, such as the name of the user.
"""

import structlog

from lacuna_server.wire.protocol import ErrorCode, ServiceError

log = structlog.get_logger("audit")

# The client itself brought these about.
OWN_DOING: frozenset[ErrorCode] = frozenset({"superseded", "cancelled"})


def refused(error: ServiceError, what: str) -> None:
    """Log that ``what``, a path or a kind of message, was refused."""
    if error.code not in OWN_DOING:
        log.warning("refused", code=error.code, what=what)
