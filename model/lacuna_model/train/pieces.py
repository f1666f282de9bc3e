"""Files cut into pieces that a narrow way lets through, and put together again. Standard library only."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

from lacuna_model import atomic
from lacuna_model.errors import LacunaError

MANIFEST = "pieces.json"
_BLOCK = 1 << 20


class PieceError(LacunaError):
    """A piece that is damaged, or a manifest that is none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file or a piece: its name, size in bytes and SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files one behind the other are the pieces one behind the other."""

    files: list[Part]
    pieces: list[Part]


def cut(files: Sequence[Path], out: Path, piece_bytes: int) -> Manifest:
    """Write `piece-000`, `piece-001` and so on and the manifest to ``out``, none larger than ``piece_bytes``."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("piece-*"):
        old.unlink()
    pieces = []
    for number, data in enumerate(_cut(files, piece_bytes)):
        name = f"piece-{number:03}"
        (out / name).write_bytes(data)
        pieces.append(Part(name, len(data), hashlib.sha256(data).hexdigest()))
    manifest = Manifest([Part(path.name, path.stat().st_size, _sha256(path)) for path in files], pieces)
    (out / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1) + "\n")
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The manifest in ``folder``; raises PieceError."""
    path = folder / MANIFEST
    try:
        said = json.loads(path.read_text())
        return Manifest(*([Part(**part) for part in said[name]] for name in ("files", "pieces")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PieceError(f"{path}: not a manifest of pieces: {error}") from error


def join(folder: Path, out: Path) -> list[str]:
    """Write to ``out`` every file whose pieces are all in ``folder``; returns the names of those that are not.

    A file that is there with its size stays. Raises PieceError for a damaged piece.
    """
    manifest = read_manifest(folder)
    out.mkdir(parents=True, exist_ok=True)
    ends = list(accumulate(piece.size for piece in manifest.pieces))
    start, missing = 0, []
    for file in manifest.files:
        target, stop = out / file.name, start + file.size
        span = [
            (piece, max(0, start - end + piece.size), min(piece.size, stop - end + piece.size))
            for piece, end in zip(manifest.pieces, ends, strict=True)
            if end > start and end - piece.size < stop
        ]
        start = stop
        if target.is_file() and target.stat().st_size == file.size:
            continue
        if not all((folder / piece.name).is_file() for piece, _, _ in span):
            missing.append(file.name)
            continue
        with atomic.replacing(target) as stream:
            for piece, first, last in span:
                stream.write(_read(folder / piece.name, piece)[first:last])
        if _sha256(target) != file.sha256:
            target.unlink()
            raise PieceError(f"{target}: does not match its checksum")
    return missing


def _cut(files: Sequence[Path], piece_bytes: int) -> Iterator[bytes]:
    piece = bytearray()
    for path in files:
        with path.open("rb") as stream:
            while data := stream.read(piece_bytes - len(piece)):
                piece += data
                if len(piece) == piece_bytes:
                    yield bytes(piece)
                    piece.clear()
    if piece:
        yield bytes(piece)


def _read(path: Path, piece: Part) -> bytes:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != piece.sha256:
        raise PieceError(f"{path}: the piece is damaged: {len(data)} bytes do not match its checksum")
    return data


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def copy_pieces(source: Path, target: Path) -> None:
    """Take the manifest and whatever pieces there are from one folder to another."""
    target.mkdir(parents=True, exist_ok=True)
    for path in (source / MANIFEST, *source.glob("piece-*")):
        shutil.copy(path, target / path.name)
