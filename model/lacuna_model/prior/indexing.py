"""The index of a workspace's files, kept in the user's cache, and that of a document that is being edited.

In the index of a document, what a key costs grows with what it changed, and not with the file. It is indexed by pieces.
A piece is encoded once, and sorted into a block with others. Only the pieces that were changed last are sorted at each
key.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from lacuna_model.core.pieces import nearest_first
from lacuna_model.files.opening import Mark, absolute
from lacuna_model.hub import atomic, models
from lacuna_model.prior.index import Index, IndexedDocuments, Segment
from lacuna_model.tokenizer import Tokenizer

SUFFIX = ".index"
MAX_KEPT = 40
# Indexes hold texts of the user's, so those that were not used for so long are removed.
MAX_UNUSED_S = 60 * 24 * 3600


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokenizer: str
    kind: str
    data: bytes
    order: bytes
    names: list[str]
    marks: dict[str, Mark]


def location(root: Path, fingerprint: str) -> Path:
    """The path of a workspace's index for one tokenizer."""
    digest = hashlib.sha256(f"{absolute(root)} {fingerprint}".encode()).hexdigest()
    return models.cache_dir() / "workspaces" / f"{digest[:24]}{SUFFIX}"


def save(file: Path, documents: IndexedDocuments[str], marks: dict[str, Mark], fingerprint: str) -> None:
    """Write an index, readable by its owner only, since it holds the text of the files, if that is possible.

    ``marks`` are those of the files when they were read.
    """
    order = documents.order.astype("<i4", copy=False).tobytes()
    kept = _Kept(fingerprint, documents.kind.str, documents.data, order, list(documents.names), marks)
    body = msgspec.msgpack.encode(kept)

    def write(target: Path) -> None:
        with atomic.replacing(target, private=True) as stream:
            stream.write(hashlib.sha256(body).digest() + body)

    atomic.keep(file, f"*{SUFFIX}", write, most=MAX_KEPT, max_age_s=MAX_UNUSED_S)


def load(file: Path, fingerprint: str) -> tuple[IndexedDocuments[str], dict[str, Mark]] | None:
    """The index in a file, and the marks of the files in it.

    None where there is none, it is damaged, or it belongs to another tokenizer or version.
    """
    try:
        with atomic.kept(file) as stream:
            digest, body = stream.read(hashlib.sha256().digest_size), stream.read()
        if hashlib.sha256(body).digest() != digest:
            return None
        kept = msgspec.msgpack.decode(body, type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return None
    if kept.tokenizer != fingerprint:
        return None
    order = np.frombuffer(kept.order, dtype="<i4").astype(np.int32, copy=False)
    return IndexedDocuments(kept.data, np.dtype(kept.kind), kept.names, order), kept.marks


# Bytes that are encoded at once: some 20 ms. Of a document that has more, those nearest to the gaps come first.
BYTES_AT_ONCE = 1 << 15
# Tokens that are sorted anew at each key, at most: 1 ms.
MOST_RECENT = 8192
# Tokens of a block, at most: to sort them takes 10 ms.
MOST_SORTED = 1 << 16


class PiecewiseIndex:
    """The index of one document; ``texts`` are those between its gaps."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._index = Index[bytes](tokenizer.vocab_size, MOST_RECENT, MOST_SORTED)

    def segments(self, texts: Sequence[bytes]) -> list[Segment]:
        """The segments of what is indexed so far, after one more part of what is not."""
        self._take(nearest_first(texts))
        return self._index.segments()

    def read(self, texts: Sequence[bytes]) -> Iterator[None]:
        """Index the whole document, and pause after each part."""
        pieces = nearest_first(texts)
        while self._take(pieces):
            yield

    def _take(self, pieces: Sequence[bytes]) -> bool:
        """Forget what is not among some pieces, and index some that are new; returns whether there were any."""
        known, size = self._index.names, 0
        changes: dict[bytes, list[int] | None] = dict.fromkeys(known.difference(pieces))
        for piece in pieces:
            if piece not in known and size < BYTES_AT_ONCE:
                changes[piece] = self._tokenizer.encode(piece.decode(errors="ignore"))
                size += len(piece)
        if changes:
            self._index.update(changes)
        return size > 0
