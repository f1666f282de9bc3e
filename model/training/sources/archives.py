"""Reads files from wheels, zips, tarballs and Debian packages; unpacks nothing to disk and runs nothing."""

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from lzma import LZMAError
from pathlib import Path
from typing import BinaryIO

from training.stored.packages import CorpusError

Wanted = Callable[[str], bool]
_MAX_MEMBER = 2_000_000
_AR_MAGIC = b"!<arch>\n"
_AR_MEMBER = struct.Struct("16s12s6s6s8s10s2s")
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
)


def read_archive(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """Yields (name, data) of the wanted regular files, in the archive's order; raises CorpusError if it is damaged."""
    try:
        if path.suffix == ".deb":
            with path.open("rb") as package:
                yield from _read_tar(_data_member(package), wanted)
        elif zipfile.is_zipfile(path):
            yield from _read_zip(path, wanted)
        else:
            with path.open("rb") as tarball:
                yield from _read_tar(tarball, wanted)
    except _DAMAGE as error:
        raise CorpusError(f"{path}: the archive is damaged: {error}") from error


def _read_zip(path: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and member.file_size <= _MAX_MEMBER and wanted(member.filename):
                yield member.filename, archive.read(member)


def _read_tar(stream: BinaryIO, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    # Stream mode reads a compressed tarball once, from start to end.
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            if member.isreg() and member.size <= _MAX_MEMBER and wanted(member.name):
                file = archive.extractfile(member)
                if file is not None:
                    yield member.name, file.read()


def _data_member(package: BinaryIO) -> BinaryIO:
    """Returns the tarball of installed files inside a Debian package, which is an `ar` archive."""
    if package.read(len(_AR_MAGIC)) != _AR_MAGIC:
        raise ValueError("not a Debian package")
    while True:
        name, _, _, _, _, size, _ = _AR_MEMBER.unpack(package.read(_AR_MEMBER.size))
        if name.startswith(b"data.tar"):
            return io.BytesIO(package.read(int(size)))
        package.seek(int(size) + int(size) % 2, io.SEEK_CUR)
