"""Carries a large file to another machine in pieces, each of which tells its place and its checksum by its name.

python -m tests.gpu.pieces FILE        there: puts the piece beside the others; needs no package
"""

import hashlib
import os
import sys
import time
import zlib
from pathlib import Path

# Where pieces are put together.
PLACE = Path(os.environ.get("LACUNA_RUN_B", "/dev/shm/run-b" if Path("/dev/shm").is_dir() else "/tmp/run-b"))
# With the 37 MiB of the project's tree, less than 64 MiB.
MAX_BYTES = 26 << 20
LEVEL = 6


class PiecesError(Exception):
    """Pieces are missing or damaged; one line."""


def cut(blob: bytes, folder: Path, most: int = MAX_BYTES) -> list[Path]:
    """Write a compressed blob as pieces of at most ``most`` bytes into a folder, which loses older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.piece"):
        old.unlink()
    packed = zlib.compress(blob, LEVEL)
    parts = [packed[first : first + most] for first in range(0, len(packed), most)]
    paths = []
    for index, part in enumerate(parts):
        path = folder / f"{index:02}-of-{len(parts):02}-{_digest(part)}.piece"
        path.write_bytes(part)
        paths.append(path)
    return paths


def place(piece: Path, folder: Path) -> str:
    """Copy one piece into the folder of all; returns a line about it. Raises PiecesError where it is damaged."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    content = _checked(piece)
    (folder / piece.name).write_bytes(content)
    there = len(list(folder.glob("*.piece")))
    return f"{piece.name}: {len(content):,} bytes are right; {there} pieces there; {time.monotonic() - began:.2f} s"


def joined(folder: Path) -> bytes:
    """The blob of the pieces in a folder; raises PiecesError where one is missing or damaged."""
    paths = sorted(folder.glob("*.piece"))
    count = int(paths[0].name.split("-")[2]) if paths else 0
    if not paths or len(paths) != count:
        raise PiecesError(f"{folder} has {len(paths)} pieces of {count or 'a pack'}")
    return zlib.decompress(b"".join(map(_checked, paths)))


def _checked(piece: Path) -> bytes:
    try:
        content = piece.read_bytes()
    except OSError as error:
        raise PiecesError(f"{piece}: {error.strerror}") from error
    if _digest(content) != piece.stem.rpartition("-")[2]:
        raise PiecesError(f"{piece} is damaged")
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(place(Path(name), PLACE))
