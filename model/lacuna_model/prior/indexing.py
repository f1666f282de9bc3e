"""How texts get into an index: the files of a workspace, and the documents that are being edited.

The index of the files is kept in the user's cache, and only those that have changed are read again. In the index of a
document, what a key costs grows with what it changed, and not with the file. It is indexed by pieces. A piece is
encoded once, and sorted into a block with others; a block stays as long as most of it is in the document, and what is
not is hidden. Only the pieces that were changed last are sorted at each key.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from lacuna_model.core.pieces import nearest_first
from lacuna_model.files.opening import absolute
from lacuna_model.files.scanning import WorkspaceSettings, read_source, scan
from lacuna_model.hub import atomic, models
from lacuna_model.prior.index import IndexedDocuments, Segment, Tokens, token_type
from lacuna_model.tokenizer import Tokenizer

# Increase when the format of the file changes.
VERSION = 1
SUFFIX = ".index"
MAX_KEPT = 40
# Indexes hold texts of the user's, so those that were not used for so long are removed.
MAX_UNUSED_S = 60 * 24 * 3600

Mark = tuple[int, int]
# Bytes of text encoded at once; encoding takes many times the memory of the tokens.
BATCH_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class IndexedFiles:
    """The files of a workspace as they were read: indexed, with size (bytes) and modification time (ns) of each."""

    documents: IndexedDocuments[str]
    marks: Mapping[str, Mark]


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    tokenizer: str
    kind: str
    text_bytes: int
    sha256: str
    marks: dict[str, Mark]
    names: list[str]


def location(root: Path, fingerprint: str) -> Path:
    """The path of a workspace's index for one tokenizer."""
    digest = hashlib.sha256(f"{absolute(root)} {fingerprint}".encode()).hexdigest()
    return models.cache_dir() / "workspaces" / f"{digest[:24]}{SUFFIX}"


def save(file: Path, files: IndexedFiles, fingerprint: str) -> None:
    """Write an index, readable by its owner only, since it holds the text of the files, if that is possible."""
    documents = files.documents
    body = [documents.data, documents.order.astype("<i4", copy=False).tobytes()]
    digest = hashlib.sha256()
    for part in body:
        digest.update(part)
    header = msgspec.json.encode(
        _Header(
            version=VERSION,
            tokenizer=fingerprint,
            kind=documents.kind.str,
            text_bytes=len(documents.data),
            sha256=digest.hexdigest(),
            marks=dict(files.marks),
            names=list(documents.names),
        )
    )
    atomic.keep(
        file,
        f"*{SUFFIX}",
        lambda stream: stream.writelines([header, b"\n", *body]),
        private=True,
        most=MAX_KEPT,
        max_age_s=MAX_UNUSED_S,
    )


def load(file: Path, fingerprint: str) -> IndexedFiles | None:
    """The index in a file; None where there is none, it is damaged, or it belongs to another tokenizer or version."""
    try:
        with atomic.kept(file) as stream:
            header = msgspec.json.decode(stream.readline(), type=_Header)
            if (header.version, header.tokenizer) != (VERSION, fingerprint):
                return None
            data = stream.read(header.text_bytes)
            order = stream.read()
    except (OSError, msgspec.MsgspecError):
        return None
    digest = hashlib.sha256(data)
    digest.update(order)
    if digest.hexdigest() != header.sha256:
        return None
    suffixes = np.frombuffer(order, dtype="<i4").astype(np.int32, copy=False)
    return IndexedFiles(IndexedDocuments(data, np.dtype(header.kind), header.names, suffixes), header.marks)


def refresh(
    root: Path,
    settings: WorkspaceSettings,
    tokenizer: Tokenizer,
    known: IndexedFiles | None = None,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> IndexedFiles:
    """Bring an index of the files under ``root`` up to date; returns ``known`` itself where nothing has changed.

    ``stopped`` is checked between files: the files read so far are indexed, and the others keep their entries in
    ``known``.
    """
    root, kind = absolute(root), token_type(tokenizer.vocab_size)
    old: Mapping[str, Tokens] = dict(known.documents.tokens()) if known else {}
    marks, tokens, waiting = dict[str, Mark](), dict[str, Tokens](), dict[str, str]()

    def encode() -> None:
        encoded = tokenizer.encode_batch(list(waiting.values()))
        tokens.update((name, np.array(ids, dtype=kind)) for name, ids in zip(waiting, encoded, strict=True))
        waiting.clear()

    for file in scan(root, settings):
        if stopped():
            tokens |= {name: own for name, own in old.items() if name not in marks}
            marks = dict(known.marks if known else {}) | marks
            break
        name, mark = name_of(root, file.path), (file.size, file.mtime_ns)
        marks[name] = mark
        if known and known.marks.get(name) == mark:
            tokens |= {name: old[name]} if name in old else {}
        elif (text := read_source(root, file.path, settings.max_file_bytes)) is not None:
            waiting[name] = text
        if sum(map(len, waiting.values())) >= BATCH_BYTES:
            encode()
    encode()
    return known if known and marks == known.marks else IndexedFiles(IndexedDocuments.index(tokens, kind), marks)


def name_of(root: Path, path: Path) -> str:
    """The name of a file in an index: its path from the root, with forward slashes."""
    return path.relative_to(root).as_posix()


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
        self._kind = token_type(tokenizer.vocab_size)
        self._blocks: list[IndexedDocuments[bytes]] = []
        self._recent: dict[bytes, Tokens] = {}

    def segments(self, texts: Sequence[bytes]) -> list[Segment]:
        """The segments of what is indexed so far, after one more part of what is not."""
        pieces = nearest_first(texts)
        self._take(pieces)
        there = frozenset(pieces)
        recent = Segment(IndexedDocuments.index(self._recent, self._kind))
        return [recent, *(Segment.of(block, _gone(block, there)) for block in self._blocks)]

    def read(self, texts: Sequence[bytes]) -> Iterator[None]:
        """Index the whole document, and pause after each part."""
        pieces = nearest_first(texts)
        while self._take(pieces):
            yield

    def _take(self, pieces: Sequence[bytes]) -> bool:
        """Forget what is not among some pieces, and index some that are new; returns whether there were any."""
        self._drop(frozenset(pieces))
        known = self._recent.keys() | {name for block in self._blocks for name in block.names}
        some, size = list[bytes](), 0
        for piece in pieces:
            if piece not in known and size < BYTES_AT_ONCE:
                some.append(piece)
                size += len(piece)
        encoded = (self._tokenizer.encode(piece.decode(errors="ignore")) for piece in some)
        self._recent |= {piece: np.array(ids, dtype=self._kind) for piece, ids in zip(some, encoded, strict=True)}
        if sum(map(len, self._recent.values())) > MOST_RECENT:
            self._sort_recent()
        return bool(some)

    def _drop(self, there: frozenset[bytes]) -> None:
        """Forget the pieces that are gone, and sort again those of a block that has lost most."""
        self._recent = {piece: tokens for piece, tokens in self._recent.items() if piece in there}
        for block in list(self._blocks):
            if 2 * len(_gone(block, there)) > len(block.names):
                self._blocks.remove(block)
                self._recent |= {name: tokens for name, tokens in block.tokens() if name in there}

    def _sort_recent(self) -> None:
        """Make a block of the pieces that were changed last, together with blocks that are no larger."""
        pieces = dict(self._recent)
        size = sum(map(len, pieces.values()))
        while self._blocks and len(self._blocks[-1].text) <= min(size, MOST_SORTED - size):
            pieces |= self._blocks.pop().tokens()
            size = sum(map(len, pieces.values()))
        self._blocks.append(IndexedDocuments.index(pieces, self._kind))
        self._recent = {}


def _gone(block: IndexedDocuments[bytes], there: frozenset[bytes]) -> list[bytes]:
    return [name for name in block.names if name not in there]
