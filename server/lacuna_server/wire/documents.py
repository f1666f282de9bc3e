"""The documents of a session, and the memory that all share."""

from collections.abc import Sequence
from dataclasses import dataclass

from lacuna_model.text.lines import within_character
from lacuna_server.wire.protocol import Change, Edit, Open, OpenDocument, ServiceError

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
# The bytes of a piece while edits are applied.
PIECE = 65_536


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
    """Open documents by uri: at most ``max_documents``, each of at most ``max_bytes``, all charged to ``share``."""

    def __init__(self, *, max_documents: int, max_bytes: int, share: Share) -> None:
        self._share = share
        self._documents: dict[str, ServiceDocument] = {}
        self._max_documents = max_documents
        self._max_bytes = max_bytes

    def __len__(self) -> int:
        return len(self._documents)

    def listed(self) -> tuple[OpenDocument, ...]:
        """Return the uri and version of every open document."""
        return tuple(OpenDocument(document.uri, document.version) for document in self._documents.values())

    def __contains__(self, uri: str) -> bool:
        return uri in self._documents

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

        A change that cannot be applied closes the document, because its text no longer agrees with the client's; the
        client has to open it again. Raises ServiceError ``unknown_document``, ``wrong_version``, ``bad_request``,
        ``too_large`` or ``overloaded``.
        """
        document = self._find(change.uri)
        before = document.num_bytes
        try:
            if change.version <= document.version:
                raise ServiceError("wrong_version", f"version {change.version} does not follow {document.version}")
            apply(document.text, change.edits)
            self._check_size(change.uri, len(document.text))
            self._share.take(document.num_bytes - before)
        except ServiceError:
            del self._documents[change.uri]
            self._share.take(-before)
            raise
        document.version = change.version

    def edited(self, document: ServiceDocument, edits: Sequence[Edit]) -> bytearray:
        """Return the text of a document after edits, which it keeps nothing of.

        Raises ServiceError ``bad_request`` or ``too_large``.
        """
        text = bytearray(document.text) if edits else document.text
        apply(text, edits)
        self._check_size(document.uri, len(text))
        return text

    def folded(self, change: Change) -> Change:
        """Return a change with one edit that does the same, if no other change comes first; safe in a thread.

        Raises ServiceError ``unknown_document`` or ``bad_request``.
        """
        old = self._find(change.uri).text
        apply(new := bytearray(old), change.edits)
        return Change(change.uri, change.version, (Edit(0, len(old), new.decode()),))

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


def apply(text: bytearray, edits: Sequence[Edit]) -> None:
    """Apply edits to a text, one after the other, in time linear in the text and the edits.

    Raises ServiceError ``bad_request``, and changes nothing, where an edit is out of range or splits a character.
    """
    pieces = _Pieces([text] if len(edits) <= 1 else _cut(text))
    for edit in edits:
        pieces.replace(edit.start, edit.end, edit.text.encode())
    if len(edits) > 1:
        text[:] = bytearray().join(pieces.all)


class _Pieces:
    """A text in pieces, so that an edit moves no more than one piece."""

    def __init__(self, pieces: list[bytearray]) -> None:
        self.all = pieces
        self._size = sum(map(len, pieces))
        # The piece of the last edit, its index and its offset: the next edit is often near.
        self._edited, self._index, self._base = bytearray(), 0, 0

    def replace(self, start: int, end: int, new: bytes) -> None:
        if not 0 <= start <= end <= self._size:
            raise ServiceError("bad_request", f"edit {start}..{end} lies outside {self._size} bytes")
        if len(self._edited) > 2 * PIECE:
            self.all[self._index : self._index + 1] = _cut(self._edited)
        self._edited = piece = self._seek(start, end)
        for at in (start, end):
            if within_character(piece, at - self._base):
                raise ServiceError("bad_request", f"the edit's offset {at} lies within a character")
        piece[start - self._base : end - self._base] = new
        self._size += len(new) - (end - start)

    def _seek(self, start: int, end: int) -> bytearray:
        """Return the piece with the bytes at both offsets, which is made of several where it has to be."""
        while start < self._base:
            self._index -= 1
            self._base -= len(self.all[self._index])
        while start - self._base >= len(self.all[self._index]) and self._index + 1 < len(self.all):
            self._base += len(self.all[self._index])
            self._index += 1
        piece, stop = self.all[self._index], self._index + 1
        while end - self._base >= len(piece) and stop < len(self.all):
            piece += self.all[stop]
            stop += 1
        del self.all[self._index + 1 : stop]
        return piece


def _cut(text: bytearray) -> list[bytearray]:
    return [text[at : at + PIECE] for at in range(0, max(len(text), 1), PIECE)]
