"""Indexes kept in the user's cache between runs, each with a checksum; a damaged one is ignored."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from lacuna_model.hub import atomic, models
from lacuna_model.hub.keeping import prune
from lacuna_model.prior.index import IndexedDocuments
from lacuna_model.prior.suffix_array import SuffixArray

# Increase when the format of the file changes.
VERSION = 1
SUFFIX = ".index"
# Indexes hold the text of files, so those of workspaces that were not opened for long are removed.
MAX_KEPT = 40
MAX_SECONDS = 60 * 24 * 3600

Mark = tuple[int, int]


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
    digest = hashlib.sha256(f"{root.absolute()} {fingerprint}".encode()).hexdigest()
    return models.cache_dir() / "workspaces" / f"{digest[:24]}{SUFFIX}"


def save(file: Path, files: IndexedFiles, fingerprint: str) -> None:
    """Write an index, readable by its owner only, since it holds the text of the files. Raises OSError."""
    array = files.documents.array
    body = [array.data, array.order.astype("<i4", copy=False).tobytes()]
    digest = hashlib.sha256()
    for part in body:
        digest.update(part)
    header = msgspec.json.encode(
        _Header(
            version=VERSION,
            tokenizer=fingerprint,
            kind=array.kind.str,
            text_bytes=len(array.data),
            sha256=digest.hexdigest(),
            marks=dict(files.marks),
            names=list(files.documents.names),
        )
    )
    atomic.make_private(file.parent)
    with atomic.replacing(file, private=True) as stream:
        stream.write(header + b"\n")
        stream.writelines(body)
    prune(file, most=MAX_KEPT, most_seconds=MAX_SECONDS)


def load(file: Path, fingerprint: str) -> IndexedFiles | None:
    """The index in a file; None where there is none, it is damaged, or it belongs to another tokenizer or version."""
    try:
        if not atomic.is_trusted(file):
            return None
        with file.open("rb") as stream:
            os.utime(file)  # marks it as used
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
    array = SuffixArray(data, np.dtype(header.kind), np.frombuffer(order, dtype="<i4").astype(np.int32, copy=False))
    return IndexedFiles(IndexedDocuments(array, header.names), header.marks)
