"""The documents of a session, and the memory that all share."""

from collections.abc import Sequence
from dataclasses import dataclass

from lacuna_model.text.lines import within_character
from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.protocol import Change, Edit, Open, ServiceError

RETRY_MS = 2000


class Pool:
    """``size`` bytes for all clients.

    A share may hold at most as many bytes as then remain free. Half of the pool is reserved for clients that send the
    token, so that other users of this machine cannot keep this user's own clients out.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0

    def share(self, *, trusted: bool = False) -> "Share":
        """Return an empty share; only ``trusted`` ones may use the reserved half."""
        return Share(self, self.size if trusted else self.size // 2)


class Share:
    """The bytes of a pool that one client, or one of its buffers, holds.

    It takes no more once all shares of the pool together would hold more than ``limit``.
    """

    def __init__(self, pool: Pool, limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self.held = 0

    def trust(self) -> None:
        """Let the share use the reserved half, since its client has sent the token."""
        self._limit = self._pool.size

    def take(self, num_bytes: int) -> None:
        """Add ``num_bytes`` to what the share holds; a negative number gives bytes back.

        Raises ServiceError ``overloaded``, and then nothing has changed.
        """
        left = self._limit - self._pool.held - num_bytes
        if num_bytes > 0 and self.held + num_bytes > left:
            held = f"all clients together hold {self._pool.held} of {self._pool.size} bytes"
            raise ServiceError("overloaded", f"{held}, there is no room for more", RETRY_MS)
        self.held += num_bytes
        self._pool.held += num_bytes

    def give_back(self) -> None:
        """Give all bytes back."""
        self.take(-self.held)


# Bytes of memory that a document takes beside its text and names.
OVERHEAD = 1024
# A change with more edits would hold up other clients; who makes one opens the document again.
MAX_EDITS = 1000


@dataclass(slots=True)
class ServiceDocument:
    """An open document; ``text`` is UTF-8."""

    uri: str
    text: bytearray
    version: int
    path: str
    language: str
    workspace: str

    @property
    def num_bytes(self) -> int:
        """The memory that it takes."""
        return OVERHEAD + len(self.text) + sum(map(len, (self.uri, self.path, self.language, self.workspace)))


class Documents:
    """Open documents by uri, whose number and sizes ``config`` limits, all charged to ``share``."""

    def __init__(self, config: ServerConfig, share: Share) -> None:
        self._share = share
        self._documents: dict[str, ServiceDocument] = {}
        self._max_documents = config.max_documents
        self._max_bytes = config.max_document_bytes

    def __len__(self) -> int:
        return len(self._documents)

    def open(self, opened: Open) -> None:
        """Open a document, or replace it. Raises ServiceError ``too_large`` or ``overloaded``."""
        text = bytearray(opened.text.encode())
        self._check_size(opened.uri, len(text))
        if opened.uri not in self._documents and len(self._documents) >= self._max_documents:
            raise ServiceError("too_large", f"{self._max_documents} documents are open, no more are allowed")
        document = ServiceDocument(opened.uri, text, opened.version, opened.path, opened.language, opened.workspace)
        before = self._documents.get(opened.uri)
        self._share.take(document.num_bytes - (before.num_bytes if before is not None else 0))
        self._documents[opened.uri] = document

    def change(self, change: Change) -> None:
        """Apply a change.

        Raises ServiceError ``unknown_document``, ``wrong_version``, ``bad_request``, ``too_large`` or ``overloaded``:
        then the text is not the client's any more, and the document has to be closed.
        """
        document = self._find(change.uri)
        if change.version <= document.version:
            raise ServiceError("wrong_version", f"version {change.version} does not follow {document.version}")
        text = self.edited(document, change.edits)
        self._share.take(len(text) - len(document.text))
        document.text, document.version = text, change.version

    def edited(self, document: ServiceDocument, edits: Sequence[Edit]) -> bytearray:
        """Return the text of a document after edits, which it keeps nothing of.

        Raises ServiceError ``bad_request`` or ``too_large``.
        """
        if len(edits) > MAX_EDITS:
            raise ServiceError("bad_request", f"{len(edits)} edits, {MAX_EDITS} are allowed: open the document again")
        text = apply(document.text, edits)
        self._check_size(document.uri, len(text))
        return text

    def close(self, uri: str) -> None:
        """Close a document; does nothing where it is not open."""
        if (document := self._documents.pop(uri, None)) is not None:
            self._share.take(-document.num_bytes)

    def close_all(self) -> None:
        """Close every document."""
        self._documents.clear()
        self._share.give_back()

    def get(self, uri: str, version: int) -> ServiceDocument:
        """Return a document in exactly that version. Raises ServiceError ``unknown_document`` or ``wrong_version``."""
        document = self._find(uri)
        if document.version != version:
            raise ServiceError("wrong_version", f"the document is open in version {document.version}, not {version}")
        return document

    def _find(self, uri: str) -> ServiceDocument:
        if uri not in self._documents:
            raise ServiceError("unknown_document", "no such document is open; open it (again) first")
        return self._documents[uri]

    def _check_size(self, uri: str, size: int) -> None:
        if size > self._max_bytes:
            raise ServiceError("too_large", f"the document has {size} bytes, {self._max_bytes} are allowed")


def apply(before: bytes | bytearray, edits: Sequence[Edit]) -> bytearray:
    """Return a text after edits, applied one after the other.

    Raises ServiceError ``bad_request`` where an edit is out of range or splits a character.
    """
    text = bytearray(before)
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise ServiceError("bad_request", f"edit {edit.start}..{edit.end} lies outside {len(text)} bytes")
        for at in (edit.start, edit.end):
            if within_character(text, at):
                raise ServiceError("bad_request", f"the edit's offset {at} lies within a character")
        text[edit.start : edit.end] = edit.text.encode()
    return text
