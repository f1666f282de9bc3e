"""Fetches published files over HTTPS: verified by digest, resumed where they were cut off."""

import errno
import hashlib
import http.client
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from lacuna_model.errors import DownloadError

_TIMEOUT = 120
_ATTEMPTS = 4
_PIECE = 1 << 20
_USER_AGENT = "lacuna-corpus (+https://pypi.org/project/lacuna-code)"
_REFUSED = 416


class NotPublishedError(DownloadError):
    """The registry does not have that package, version or file."""


class Artifact(msgspec.Struct, frozen=True):
    """One published file; `digest` is `algorithm:hex` as the registry states it."""

    url: str
    filename: str
    digest: str


def fetch(artifact: Artifact, folder: Path) -> Path:
    """Return the verified local copy of a file, downloading what is missing of it."""
    path = folder / artifact.filename
    if path.is_file() and _digest(path, artifact.digest) == artifact.digest:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    _retry(artifact.url, part)
    found = _digest(part, artifact.digest)
    if found != artifact.digest:
        part.unlink()
        raise DownloadError(f"{path}: the download of {artifact.url} has digest {found}, expected {artifact.digest}")
    part.replace(path)
    return path


def fetch_document(url: str, folder: Path) -> bytes:
    """Return a small document of a registry, such as the description of a package."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="document-") as scratch:
        part = Path(scratch) / "document"
        _retry(url, part)
        return part.read_bytes()


def _retry(url: str, part: Path) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _append(url, part)
            return
        except urllib.error.HTTPError as error:
            if error.code in {404, 410}:
                raise NotPublishedError(f"{url}: not published") from error
            if error.code == _REFUSED:
                # The part is already as long as the file, or longer: the digest will tell which.
                return
            failure: Exception = error
        except (OSError, http.client.HTTPException) as error:
            failure = error
        if attempt < _ATTEMPTS:
            time.sleep(attempt)
    raise DownloadError(f"{part}: cannot download {url}: {failure}; run it again to resume")


def _append(url: str, part: Path) -> None:
    """Continue a partial file, or start over where the server cannot continue."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": _USER_AGENT})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with _opener().open(request, timeout=_TIMEOUT) as answer:
        mode = "ab" if have and answer.status == http.client.PARTIAL_CONTENT else "wb"
        with _writing(part), part.open(mode) as file:
            while piece := _piece(answer):
                file.write(piece)


@cache
def _opener() -> urllib.request.OpenerDirector:
    # One context for all: loading the certificates for every request takes longer than a small download.
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=ssl.create_default_context()))


def _piece(answer: http.client.HTTPResponse) -> bytes:
    piece = answer.read(_PIECE)
    # A connection that breaks off looks like the end of the file, but for the bytes that were promised.
    if not piece and getattr(answer, "length", None):
        raise http.client.IncompleteRead(b"", answer.length)
    return piece


@contextmanager
def _writing(part: Path) -> Iterator[None]:
    """Tell a full disk from a bad connection: trying again helps only against the latter."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}:
            raise DownloadError(f"{part}: cannot write the download: {error.strerror}") from error
        raise


def _digest(path: Path, like: str) -> str:
    algorithm = like.partition(":")[0]
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"
