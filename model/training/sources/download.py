"""Fetches packages by name and version through pip, npm and apt, which locate and verify them."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from lacuna_model.core.errors import DownloadError, NotPublishedError
from lacuna_model.hub.sources import shortened
from training.stored.packages import Package

_SCRATCH = "fetching-"


def fetch(package: Package, folder: Path, get: Callable[[Path], None]) -> tuple[Path, ...]:
    """Returns the files of a package, kept in ``folder``; calls ``get`` with an empty folder to download missing ones.

    Either all files of a package are kept or none. A version may be a range, as in "<1.2". Raises NotPublishedError if
    the registry has no such package, else DownloadError.
    """
    kept = folder / package.source / f"{package.name.replace('/', '-')}-{package.version.replace('<', 'before-')}"
    try:
        if not kept.is_dir():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder) as scratch:
                files = Path(scratch) / "files"
                files.mkdir()
                get(files)
                os.replace(files, kept)
        return tuple(sorted(path for path in kept.iterdir() if path.is_file()))
    except OSError as error:
        raise DownloadError(f"{kept}: cannot keep the download: {error.strerror}") from error


def run(command: Sequence[str], folder: Path, absent: re.Pattern[str]) -> None:
    """Runs a package manager in ``folder``, without input.

    Raises NotPublishedError if its output matches ``absent``, else DownloadError with its first complaint.
    """
    if shutil.which(command[0]) is None:
        raise DownloadError(f"{command[0]} is not on this machine; it fetches {command[-1]}")
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode == 0:
        return
    output = done.stdout.decode(errors="replace")
    if absent.search(output):
        raise NotPublishedError(f"{command[-1]}: {command[0]} finds no such package")
    complaints = re.findall(r"^(?:E:|npm (?:error|ERR!)(?! code| A complete log)) *(\S.*)$", output, re.MULTILINE)
    reason = (complaints or output.strip().splitlines()[-1:] or [f"it ended with code {done.returncode}"])[0]
    raise DownloadError(f"{command[0]} cannot fetch {command[-1]}: {shortened(reason)}")
