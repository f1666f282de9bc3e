"""What one client has open and wants: its documents, notebooks, folders and settings; errors, and their LSP codes."""

import math
import time
from collections.abc import Callable
from pathlib import Path, PurePath

from lsprotocol import types
from lsprotocol.types import ErrorCodes, LSPErrorCodes

from lacuna_lsp.client import settings as settings_of_client
from lacuna_lsp.document import ClientDocument, Encoding
from lacuna_model.core.errors import LacunaError, RequestError
from lacuna_model.core.params import Snippet
from lacuna_server.files import BOM
from lacuna_server.wire import layers
from lacuna_server.wire.config import Settings
from lacuna_server.wire.layers import SettingsLayer
from lacuna_server.wire.protocol import ServiceError


class ClientSession:
    """The state of one client, from ``initialize`` on; ``say`` shows the user one line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.encoding: Encoding = "utf-16"
        self.settings = Settings()
        self.folders: list[str] = []
        self.documents: dict[str, ClientDocument] = {}
        self.notebooks: dict[str, list[types.NotebookCell]] = {}
        self._snoozed_until = 0.0
        self._files: list[SettingsLayer] | None = None
        self._say = say
        self._lines_shown = set[str]()

    def configure(self, values: object) -> None:
        """Applies a client's settings over those of the files, read once; shows each problem with them once."""
        if self._files is None:
            self._files = settings_of_client.of_files(self.folders)
        found = [*self._files, settings_of_client.parse(values)]
        self.settings = layers.settings(found)
        for problem in layers.problems(found):
            self.say_once(problem)

    def say_once(self, line: str) -> None:
        """Shows the user a line, unless it was shown before."""
        if line not in self._lines_shown:
            self._lines_shown.add(line)
            self._say(line)

    @property
    def snoozed_s(self) -> int:
        """For how many seconds nothing is suggested without a request."""
        return math.ceil(max(self._snoozed_until - time.monotonic(), 0.0))

    def snooze(self, minutes: float) -> None:
        """Suggests nothing without a request for some minutes; 0: suggests again."""
        self._snoozed_until = time.monotonic() + 60 * minutes

    def workspace(self, path: str) -> str:
        """Returns the innermost of the client's folders that contains a file; "" if there is none, or none is read."""
        if not self.settings.workspace:
            return ""
        around = [folder for folder in self.folders if PurePath(path).is_relative_to(folder)]
        return max(around, key=len, default="")

    # --- documents

    def document(self, uri: str, version: int | None = None) -> ClientDocument:
        """Returns an open document; raises RequestError if it is not open, StaleError if its version differs."""
        document = self.documents.get(uri)
        if document is None:
            raise RequestError(f"{uri} is not open")
        if version is not None and version != document.version:
            raise StaleError(f"{uri} is open in version {document.version}, not {version}")
        return document

    def above(self, document: ClientDocument) -> tuple[Snippet, ...]:
        """Returns the texts that precede a document: the code cells above it in a notebook, in order."""
        for cells in self.notebooks.values():
            uris = [cell.document for cell in cells]
            if document.uri in uris:
                code = [cell for cell in cells[: uris.index(document.uri)] if cell.kind == types.NotebookCellKind.Code]
                found = [self.documents[cell.document] for cell in code if cell.document in self.documents]
                # The model gets the notebook's name without the cell id that editors append after "#".
                return tuple(
                    Snippet(one.path.partition("#")[0], one.text.decode(), reason="a cell above") for one in found
                )
        return ()

    def is_stale(self, document: ClientDocument, version: int | None) -> bool:
        """Whether a document is closed or in another version; for ``version`` None, whether its file differs."""
        if version is not None:
            return self.documents.get(document.uri) is not document or document.version != version
        try:
            return Path(document.path).read_bytes().removeprefix(BOM.encode()) != document.text
        except OSError:
            return True


class StaleError(RequestError):
    """The request names a version of a document that is not the open one."""


class CancelledByUserError(LacunaError):
    """The user cancelled the work from its progress bar."""


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
