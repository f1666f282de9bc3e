"""Installs Lacuna from a wheel beside an editor's plugin, into a folder of the plugin's own, with the model.

``python -I install.py --wheels FOLDER --into FOLDER`` makes a virtual environment there, installs the wheel with uv,
else with pip, and runs ``lacuna setup``. ``--done TEXT`` is kept in the file ``done`` at the end: what the editor knows
the wheels by. Each line of stdout is a JSON object: ``stage``, ``done``, ``total`` (0: not known) or, the last one,
what ``lacuna setup`` says. A failure is one line on stderr.

It may be killed at any moment, and goes on when it is started again: downloads are kept until all is installed, and an
environment without its mark is made anew. It ends when stdin is closed, which it is where the editor was killed.
It needs no other module than those of Python 3.11.
"""

import argparse
import errno
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

NAME = "lacuna-code"
NEEDED_BYTES = 1_800_000_000  # the programs, and their downloads while they are installed
POLL_S = 0.5
LONGEST = 300
UNREACHED = "the package index cannot be reached"
# What tells pip where packages come from, as `pip config list` prints it.
SOURCE = re.compile(r".*\.(extra-index-url|index-url|find-links)='.+'")
PASSWORDS = re.compile(r"(?<=://)[^/@\s]+@")


class SetupError(Exception):
    """Says in one line why Lacuna cannot be installed, and what to do."""


def tell(stage: str, done: int = 0, total: int = 0) -> None:
    """Print a line of progress."""
    print(json.dumps({"stage": stage, "done": done, "total": total}), flush=True)


class Installation:
    """A folder with a virtual environment (``venv``), its mark, its lock, and downloads while it is being made."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder, self.wheels = folder, wheels
        self.python = folder / ("venv/Scripts/python.exe" if sys.platform == "win32" else "venv/bin/python")
        self.downloads = folder / "downloads"
        self._mark = folder / "venv" / "installed"

    @property
    def _wanted(self) -> str:
        """What the mark of an environment with these wheels holds."""
        files = sorted(self.wheels.glob("lacuna_code-*.whl"))
        if not files:
            raise SetupError(f"there is no wheel in {self.wheels}: install Lacuna with pip")
        return "".join(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n" for file in files)

    def complete(self) -> None:
        """Install what is missing, or another version. Raises SetupError and OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with alone(self.folder / "lock") as lock:
            held = self._mark.read_text() if self._mark.is_file() else ""
            if held != self._wanted:
                self._install(held, lock)
                write(self._mark, self._wanted)
            shutil.rmtree(self.downloads, ignore_errors=True)

    def _install(self, held: str, lock: IO[bytes]) -> None:
        if not held:
            self._require_space()
            tell("making a folder for Python's packages")
            shutil.rmtree(self.folder / "venv", ignore_errors=True)
            for _ in lines(self._environment(), dict(os.environ), lock):
                pass
        self._mark.unlink(missing_ok=True)
        shutil.rmtree(self.downloads / "tmp", ignore_errors=True)  # what a killed installation has left
        (self.downloads / "tmp").mkdir(parents=True)
        self._install_wheel(bool(held), lock)
        if held:  # a service of the old version must not answer the new one
            subprocess.run([self.python, "-I", "-m", "lacuna_server", "stop"], capture_output=True)

    def _environment(self) -> list[str]:
        """The command that makes the environment: Python's own, else, where the system has split that off, uv's."""
        folder, uv = str(self.folder / "venv"), shutil.which("uv")
        if uv and importlib.util.find_spec("ensurepip") is None:
            return [uv, "venv", "--seed", "--python", sys.executable, folder]
        return [sys.executable, "-I", "-m", "venv", folder]

    def _install_wheel(self, newer: bool, lock: IO[bytes]) -> None:
        """Install the wheel; ``newer``: over another one, whose version may be the same.

        uv is quicker than pip, and takes the torch that suits the machine: for Linux, the usual index has the one with
        CUDA alone, which is several GB. pip does it where it gets packages from another place, and where uv fails.
        """
        own, source = self._variables(), ["--find-links", str(self.wheels)]
        pip = [str(self.python), "-I", "-m", "pip"]
        wheels = ["--only-binary", ":all:"]  # there may be no compiler
        install = [*pip, "install", "--progress-bar", "off", "--no-compile", *wheels, *source]

        def run(*command: str) -> None:
            follow(command, own, lock, self.downloads)

        if not any(map(SOURCE.fullmatch, list(lines([*pip, "config", "list"], own, lock)))):
            try:
                uv = shutil.which("uv")
                if uv is None:
                    run(*install, "--target", str(self.downloads / "programs"), "uv")
                    uv = str(self.downloads / "programs/bin/uv")
                again = ["--reinstall-package", NAME] * newer
                into = ["--python", str(self.python), "--torch-backend", "auto"]
                run(uv, "pip", "install", *into, *wheels, *source, *again, NAME)
                return
            except (SetupError, OSError) as error:  # there is no uv for this system, or it does not reach the index
                if uv is None and UNREACHED in str(error):
                    raise
        tell("installing programs with pip")
        if newer:
            run(*install, "--force-reinstall", "--no-deps", NAME)
        run(*install, NAME)

    def _require_space(self) -> None:
        free = shutil.disk_usage(self.folder).free
        if free < NEEDED_BYTES:
            numbers = f"{NEEDED_BYTES / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free"
            raise SetupError(f"no space left in {self.folder} ({numbers}); free some")

    def _variables(self) -> dict[str, str]:
        """The variables of pip and uv: what they download is here, where it can be counted and goes with the folder."""
        own = {"PIP_CACHE_DIR": str(self.downloads / "pip"), "UV_CACHE_DIR": str(self.downloads / "uv")}
        own |= {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0", "PYTHONUNBUFFERED": "1"}
        return os.environ | own | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.downloads / "tmp"))


def write(file: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    new = file.with_name(f"{file.name}.new")
    new.write_text(text)
    os.replace(new, file)


@contextmanager
def alone(file: Path) -> Iterator[IO[bytes]]:
    """Hold a lock, which the operating system releases with the last process that has the file open."""
    with file.open("ab") as lock:
        waiting = False
        while not _locked(lock):
            if not waiting:
                tell("waiting for another setup")
            waiting = True
            time.sleep(POLL_S)
        yield lock


def _locked(lock: IO[bytes]) -> bool:
    try:
        if hasattr(os, "fork"):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # only on Windows
    except (BlockingIOError, PermissionError):
        return False
    return True


running: subprocess.Popen[str] | None = None


def lines(command: Sequence[str], environment: dict[str, str], lock: IO[bytes] | None = None) -> Iterator[str]:
    """Run a command and yield the lines of its stdout and stderr; raises SetupError with the reason where it fails.

    It has the lock, so that no other setup begins while it goes on without this program; on Windows, where it cannot
    have that, nothing ends it but its own end.
    """
    global running
    said: list[str] = []
    descriptors = () if lock is None or not hasattr(os, "fork") else (lock.fileno(),)
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        pass_fds=descriptors,
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.strip():
                said.append(line.strip())
                yield said[-1]
    if running.returncode:
        raise SetupError(reason(said, running.returncode))


def follow(command: Sequence[str], environment: dict[str, str], lock: IO[bytes], downloads: Path) -> None:
    """Run uv or pip, and tell what it does and how much it has downloaded."""
    what = "installing programs"
    ended = threading.Event()

    def count() -> None:
        while not ended.wait(POLL_S):
            tell(what, size(downloads))

    counter = threading.Thread(target=count, daemon=True)
    counter.start()
    try:
        for line in lines(command, environment, lock):
            if line.startswith(("Downloading", "Installing")):
                what = f"installing programs: {line[:80]}"
    finally:
        ended.set()
        counter.join()


def size(folder: Path) -> int:
    """The bytes of all files of a folder that others are writing."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:  # renamed or removed meanwhile
                continue
    return total


def reason(said: Sequence[str], code: int) -> str:
    """Why pip, uv or venv failed, in one line without passwords of addresses."""
    text = "\n".join(said)
    if "ensurepip is not" in text:
        return "this Python has no venv: install the package python3-venv of your system, or uv"
    if os.strerror(errno.ENOSPC) in text:
        return "no space left on the disk; free some"
    if any(sign in text for sign in ("Retrying (", "error sending request", "dns error", "tunnel error")):
        proxy = next((os.environ[name] for name in ("HTTPS_PROXY", "https_proxy") if os.environ.get(name)), "")
        return UNREACHED + (f" by the proxy {PASSWORDS.sub('', proxy)} (HTTPS_PROXY)" if proxy else "")
    errors = [line.removeprefix("ERROR:").strip() for line in said if line.startswith("ERROR:")]
    line = (errors or list(said) or [f"the installation ended with code {code}"])[-1].removeprefix("lacuna: ")
    line = PASSWORDS.sub("", line)
    return line if len(line) <= LONGEST else line[:LONGEST] + "..."


def model(python: Path) -> None:
    """Run ``lacuna setup``, which says its progress and its result on stdout."""
    for line in lines([str(python), "-I", "-m", "lacuna_server", "setup", "--yes", "--json"], dict(os.environ)):
        if line.startswith("{"):
            print(line, flush=True)


def end_with_the_editor() -> None:
    """End, with the step that is running, when stdin is closed."""
    sys.stdin.buffer.read()
    if running is not None and running.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(running.pid, signal.SIGTERM)
        else:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(running.pid)], capture_output=True)
    os._exit(1)


def fail(line: str) -> NoReturn:
    """End with one line on stderr, without a wait for stdin's thread."""
    print(" ".join(line.split()), file=sys.stderr, flush=True)
    os._exit(1)


def main() -> None:
    """Install what is missing, and set up the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", type=Path, required=True, help="the folder with the wheel")
    parser.add_argument("--into", type=Path, required=True, help="the folder to install into")
    parser.add_argument("--done", required=True, help="what the editor knows these wheels by")
    given = parser.parse_args()
    threading.Thread(target=end_with_the_editor, daemon=True).start()
    installation = Installation(given.into, given.wheels)
    try:
        installation.complete()
        model(installation.python)
        write(given.into / "done", given.done)
    except SetupError as error:
        fail(str(error))
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        fail(f"{where}{error.strerror or error}")
    os._exit(0)


if __name__ == "__main__":
    main()
