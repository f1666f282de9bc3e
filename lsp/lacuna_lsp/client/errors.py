"""What the language server refuses beside bad arguments, and the codes that LSP has for it."""

from lsprotocol.types import ErrorCodes, LSPErrorCodes

from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_server.wire.protocol import ServiceError


class StaleError(RequestError):
    """A request for another version of a document than the one that is open."""


class CancelledByUserError(LacunaError):
    """The user cancelled the work under a progress bar."""


def code(error: LacunaError) -> int:
    """The error code of a response."""
    match error:
        case StaleError():
            return LSPErrorCodes.ContentModified
        case CancelledByUserError():
            return LSPErrorCodes.RequestCancelled
        case ServiceError():
            return LSPErrorCodes.RequestFailed
    return ErrorCodes.InvalidParams
