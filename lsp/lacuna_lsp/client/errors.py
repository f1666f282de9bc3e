"""Errors of the language server, and the LSP error code for each."""

from lsprotocol.types import ErrorCodes, LSPErrorCodes

from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_server.wire.protocol import ServiceError


class StaleError(RequestError):
    """The request names a version of a document that is not the open one."""


class CancelledByUserError(LacunaError):
    """The user cancelled the work from its progress bar."""


class UnfinishedError(LacunaError):
    """The engine ended a request before it was done, and has no text: asked again, it may have one."""


def code(error: LacunaError) -> int:
    """Returns the LSP error code for an error."""
    match error:
        case StaleError():
            return LSPErrorCodes.ContentModified
        case CancelledByUserError():
            return LSPErrorCodes.RequestCancelled
        case ServiceError():
            return LSPErrorCodes.RequestFailed
    return ErrorCodes.InvalidParams
