"""Tokenised documents on disk: checked, compressed shards, read by position in a shuffled order.

A shard is `magic, format version, header length, header crc32 | header (JSON) | payload (zstd)`. The payload is one
record a document: token count, language and package as indices into the header's tables, then the tokens as
little-endian uint16. Trainers that place gaps at characters decode a document back to text: byte-level BPE gives back
exactly what was encoded.
"""

import hashlib
import json
import random
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import zstandard
from numpy.typing import NDArray

from lacuna_model import atomic
from lacuna_model.errors import LacunaError

MAX_SHARD_BYTES = 55_000_000
_MAGIC = b"LACUNASH"
_VERSION = 2
_PREFACE = struct.Struct("<8sIII")
_RECORD = struct.Struct("<IHH")
_LEVEL = 9
_BLOCK = 1 << 17
_OVERHEAD = 1000
_MAX_TOKEN = 0xFFFF
_MAX_HEADER = 1 << 24
# A document comes up once for every so many tokens, so that long files are not seen less than short ones.
_STRETCH = 1024

Tokens = NDArray[np.uint16]


class ShardError(LacunaError):
    """A shard that cannot be written or must not be read; the message names the file."""


@dataclass(frozen=True, slots=True)
class TokenDocument:
    """One tokenised file."""

    tokens: list[int]
    language: str
    package: str


@dataclass(slots=True)
class ShardHeader:
    """What a shard says about itself."""

    tokenizer: str
    documents: int = 0
    draws: int = 0
    tokens: int = 0
    payload_bytes: int = 0
    payload_sha256: str = ""
    languages: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)


class ShardWriter:
    """Writes documents to `PREFIX-00000.shard`, `PREFIX-00001.shard` and so on, none above the size limit."""

    def __init__(self, folder: Path, prefix: str, tokenizer: str, max_bytes: int = MAX_SHARD_BYTES) -> None:
        self.paths: list[Path] = []
        self._folder = folder
        self._prefix = prefix
        self._tokenizer = tokenizer
        self._limit = max_bytes
        self._start()

    def checked(self, tokens: Sequence[int], package: str) -> Tokens:
        """Return tokens as a shard stores them, or refuse those that it cannot store."""
        if tokens and not 0 <= min(tokens) <= max(tokens) <= _MAX_TOKEN:
            raise ShardError(f"{self._path()}: token {max(tokens)} of {package} does not fit into 16 bits")
        return np.asarray(tokens, dtype="<u2")

    def write(self, tokens: Tokens, language: str, package: str) -> None:
        """Append one document."""
        data = tokens.tobytes()
        tables = ((self._languages, language), (self._packages, package))
        names = sum(len(json.dumps(name)) + 2 for table, name in tables if name not in table)
        if self._header.documents and self._largest() + len(data) + names > self._limit:
            self._finish()
        indices = _index(self._languages, language), _index(self._packages, package)
        self._append(_RECORD.pack(len(tokens), *indices) + data)
        self._names += names
        self._header.documents += 1
        self._header.draws += _draws(len(tokens))
        self._header.tokens += len(tokens)

    def close(self) -> None:
        """Write what is left."""
        if self._header.documents:
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def _start(self) -> None:
        self._header = ShardHeader(self._tokenizer)
        self._languages: dict[str, int] = {}
        self._packages: dict[str, int] = {}
        self._names = 0
        self._payload = bytearray()
        self._held_back = 0
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL).compressobj()

    def _append(self, data: bytes) -> None:
        self._payload += self._compressor.compress(data)
        self._held_back += len(data)
        # The compressor holds back megabytes if it may, and the size of the shard would be anyone's guess.
        if self._held_back >= _BLOCK:
            self._payload += self._compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            self._held_back = 0

    def _largest(self) -> int:
        """Return what the shard can come to at most, if it were finished now."""
        return len(self._payload) + self._held_back + self._names + _OVERHEAD

    def _path(self) -> Path:
        return self._folder / f"{self._prefix}-{len(self.paths):05}.shard"

    def _finish(self) -> None:
        self._payload += self._compressor.flush()
        self._header.languages, self._header.packages = [*self._languages], [*self._packages]
        self._header.payload_bytes = len(self._payload)
        self._header.payload_sha256 = hashlib.sha256(self._payload).hexdigest()
        header = json.dumps(asdict(self._header)).encode()
        preface = _PREFACE.pack(_MAGIC, _VERSION, len(header), zlib.crc32(header))
        path = self._path()
        _write_whole(path, preface, header, self._payload)
        self.paths.append(path)
        self._start()


class ShardReader:
    """The documents of several shards by position, epoch after epoch, in an order that the seed alone determines.

    Shards follow each other in the order of their names, for each is a sample of everything; within a shard the
    order is another one every epoch. A shard that is still on its way is waited for up to ``patience`` seconds.
    """

    def __init__(self, paths: Sequence[Path], tokenizer: str, seed: int = 0, patience: float = 0.0) -> None:
        if not paths:
            raise ShardError("no shards to read; make them with: lacuna train pack")
        self._paths = sorted(paths)
        self._tokenizer = tokenizer
        self._seed = seed
        self._patience = patience
        self._headers: dict[int, ShardHeader] = {}
        self._opened: tuple[int, Shard] | None = None
        self._shuffled: tuple[int, int, list[int]] | None = None
        for index, path in enumerate(self._paths):
            if not patience or path.exists():
                self._header(index)

    def read(self, position: int) -> TokenDocument:
        """The document at a position counted over all epochs."""
        shard, index = self._find(position)
        return self._shard(shard).document(index)

    def documents(self) -> Iterator[TokenDocument]:
        """Every document once, as they lie on disk."""
        for number in range(len(self._paths)):
            shard = self._shard(number)
            yield from map(shard.document, range(len(shard.records)))

    def neighbour(self, position: int, rng: random.Random) -> TokenDocument | None:
        """Another document of the same package as the one at ``position``, where its shard has one."""
        number, index = self._find(position)
        shard = self._shard(number)
        others = [other for other in shard.package_of(index) if other != index]
        return shard.document(rng.choice(others)) if others else None

    def _find(self, position: int) -> tuple[int, int]:
        """The shard and the document in it that a position means."""
        epoch = 0
        while True:
            for shard in range(len(self._paths)):
                draws = self._header(shard).draws
                if position < draws:
                    return shard, self._order(epoch, shard)[position]
                position -= draws
            epoch += 1

    def _order(self, epoch: int, shard: int) -> list[int]:
        if self._shuffled is None or self._shuffled[:2] != (epoch, shard):
            counts = [_draws(count) for _, count, *_ in self._shard(shard).records]
            order = [index for index, draws in enumerate(counts) for _ in range(draws)]
            random.Random(f"{self._seed}/{epoch}/{shard}").shuffle(order)
            self._shuffled = (epoch, shard, order)
        return self._shuffled[2]

    def _shard(self, index: int) -> "Shard":
        if self._opened is None or self._opened[0] != index:
            self._opened = None  # two shards at a time would double the memory
            self._opened = (index, Shard(self._paths[index], self._header(index)))
        return self._opened[1]

    def _header(self, index: int) -> ShardHeader:
        if index not in self._headers:
            path = self._paths[index]
            deadline = time.monotonic() + self._patience
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.2)
            header = read_header(path)
            if header.tokenizer != self._tokenizer:
                raise ShardError(
                    f"{path}: written with tokenizer {header.tokenizer}, this model's tokenizer is {self._tokenizer}"
                )
            if header.draws < 1:
                raise ShardError(f"{path}: the shard holds no documents")
            self._headers[index] = header
        return self._headers[index]


class Shard:
    """One shard in memory."""

    def __init__(self, path: Path, header: ShardHeader) -> None:
        self._header = header
        self._payload = _read_payload(path, header)
        self.records = _records(path, header, self._payload)
        self._packages: dict[int, list[int]] = {}
        for index, (*_, package) in enumerate(self.records):
            self._packages.setdefault(package, []).append(index)

    def document(self, index: int) -> TokenDocument:
        """A document by its place in the shard."""
        start, count, language, package = self.records[index]
        tokens = np.frombuffer(self._payload, dtype="<u2", count=count, offset=start).tolist()
        return TokenDocument(tokens, self._header.languages[language], self._header.packages[package])

    def package_of(self, index: int) -> list[int]:
        """All documents of one document's package, itself among them."""
        return self._packages[self.records[index][3]]


def read_header(path: Path) -> ShardHeader:
    """Read and check the header of a shard, not its payload."""
    try:
        with path.open("rb") as file:
            magic, version, length, checksum = _PREFACE.unpack(file.read(_PREFACE.size))
            data = file.read(min(length, _MAX_HEADER))
            if magic != _MAGIC or zlib.crc32(data) != checksum:
                raise ShardError(f"{path}: not a shard, or its header is damaged")
            if version != _VERSION:
                raise ShardError(f"{path}: shard format {version}, this version reads {_VERSION}")
            return ShardHeader(**json.loads(data))
    except (struct.error, ValueError, TypeError) as error:
        raise ShardError(f"{path}: not a shard, or its header is damaged: {error}") from error
    except OSError as error:
        raise ShardError(f"{path}: cannot read the shard: {error.strerror}") from error


def _read_payload(path: Path, header: ShardHeader) -> bytes:
    try:
        with path.open("rb") as file:
            length = _PREFACE.unpack(file.read(_PREFACE.size))[2]
            file.seek(_PREFACE.size + length)
            payload = file.read()
    except OSError as error:
        raise ShardError(f"{path}: cannot read the shard: {error.strerror}") from error
    if len(payload) != header.payload_bytes or hashlib.sha256(payload).hexdigest() != header.payload_sha256:
        raise ShardError(f"{path}: the shard is damaged: {len(payload)} bytes do not match its checksum")
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(payload)
    except zstandard.ZstdError as error:
        raise ShardError(f"{path}: the shard is damaged: {error}") from error


def _records(path: Path, header: ShardHeader, payload: bytes) -> list[tuple[int, int, int, int]]:
    """Return (offset of the tokens, their number, language, package) of every document."""
    records = []
    offset = 0
    try:
        for _ in range(header.documents):
            count, language, package = _RECORD.unpack_from(payload, offset)
            records.append((offset + _RECORD.size, count, language, package))
            offset += _RECORD.size + 2 * count
    except struct.error as error:
        raise ShardError(f"{path}: the shard is damaged: {error}") from error
    if offset != len(payload):
        raise ShardError(f"{path}: the shard is damaged: {len(payload) - offset} bytes after the last document")
    return records


def _draws(num_tokens: int) -> int:
    """How often a document comes up in an epoch."""
    return 1 + num_tokens // _STRETCH


def _index(table: dict[str, int], name: str) -> int:
    return table.setdefault(name, len(table))


def _write_whole(path: Path, *pieces: bytes | bytearray) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(path) as stream:
            for piece in pieces:
                stream.write(piece)
    except OSError as error:
        raise ShardError(f"{path}: cannot write the shard: {error.strerror}") from error
