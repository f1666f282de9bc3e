"""The corpus on disk: its documents, and the record of what came of each package."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import BinaryIO, TypeVar

import msgspec
import zstandard

from lacuna_model.hub import atomic
from training.packages import CorpusError, Role

T = TypeVar("T", bound=msgspec.Struct)
_LEVEL = 9
_PIECE = 1 << 17
# Texts that are drawn for training, and the share of a language's that one pass draws.
LEAST_BYTES, MAX_BYTES = 400, 200_000
PART = 1 / 16


class Document(msgspec.Struct, frozen=True):
    """One source file of the corpus."""

    package: str
    version: str
    licence: str
    path: str
    language: str
    text: str


class DocumentWriter(ExitStack):
    """Writes a corpus file, which gets its final name only when it is complete."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        path.parent.mkdir(parents=True, exist_ok=True)
        file = self.enter_context(atomic.replacing(path))
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self._stream = self.enter_context(compressor.stream_writer(file, closefd=False))

    def write(self, document: msgspec.Struct) -> None:
        """Appends one document or example. Raises OSError."""
        self._stream.write(msgspec.json.encode(document) + b"\n")


def read_documents(path: Path) -> Iterator[Document]:
    """Yields the documents of a corpus file in order; raises CorpusError if it is damaged."""
    return read_structs(path, Document)


def read_structs(path: Path, kind: type[T]) -> Iterator[T]:
    """Yields what a :class:`DocumentWriter` wrote, in order; raises CorpusError if the file is damaged."""
    decoder = msgspec.json.Decoder(kind)
    try:
        with path.open("rb") as file:
            for line in _lines(file):
                yield decoder.decode(line)
    except (OSError, EOFError, zstandard.ZstdError, msgspec.DecodeError) as error:
        raise CorpusError(f"{path}: the corpus file is damaged: {error}") from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    # The library's own stream reader does not notice that a file was cut off.
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    rest = b""
    while piece := file.read(_PIECE):
        *lines, rest = (rest + decompressor.decompress(piece)).split(b"\n")
        yield from lines
    if rest or not decompressor.eof:
        raise EOFError("it was cut off")


def texts(corpus: Path, split: str, seed: int) -> Iterator[str]:
    """Yields texts of a corpus's ``split`` without end; raises CorpusError if it has none.

    A language is drawn with the square root of its size, so that no small one is repeated over and over.
    """
    paths = sorted(corpus.glob(f"*/{split}.jsonl.zst"))
    if not paths:
        raise CorpusError(f"{corpus}: no {split} files; `python -m training corpus` builds the corpus")
    rng = Random(seed)
    languages = [_shuffled(path, rng) for path in paths]
    weights = [math.sqrt(path.stat().st_size) for path in paths]
    while True:
        (language,) = rng.choices(languages, weights)
        yield next(language)


def _shuffled(path: Path, rng: Random) -> Iterator[str]:
    """Yields the texts of a file again and again: of each pass a random ``PART``, in random order.

    The documents of a package are neighbours in the file, and a short training shall see all packages.
    """
    while True:
        num_usable, drawn = 0, list[str]()
        for document in read_documents(path):
            if LEAST_BYTES <= len(document.text) <= MAX_BYTES:
                num_usable += 1
                if rng.random() < PART:
                    drawn.append(document.text)
        if not num_usable:
            raise CorpusError(f"{path}: no text of {LEAST_BYTES} to {MAX_BYTES} bytes")
        rng.shuffle(drawn)
        yield from drawn


class PackageRecord(msgspec.Struct, kw_only=True):
    """The contribution of one package to the corpus."""

    source: str
    name: str
    version: str
    role: Role
    licence: str | None = None
    stated_licence: str = ""
    downloads: dict[str, str] = {}
    files: int = 0
    bytes: int = 0
    dropped: dict[str, int] = {}


class Total(msgspec.Struct):
    """Sums over one language and split."""

    packages: int = 0
    files: int = 0
    bytes: int = 0


class Manifest(msgspec.Struct, kw_only=True):
    """The record of a whole corpus; ``totals`` are by `language/split`."""

    totals: dict[str, Total] = {}
    packages: list[PackageRecord] = []

    def write(self, path: Path) -> None:
        """Writes the manifest as indented JSON, atomically. Raises OSError."""
        with atomic.replacing(path) as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
