"""Trains on a machine that is lent for minutes: no network, nothing installed there but torch and numpy.

Here `bundle` cuts all that the machine lacks into pieces, and at the end `join` puts the adapter together. There
`receive` takes pieces in, `start` trains in the background, `watch` waits and hands out the newest adapter in pieces,
`stop` ends the run. What runs there before the wheels are unpacked uses the standard library only; see README.md.
"""

import argparse
import fcntl
import importlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lacuna_model.errors import LacunaError
from lacuna_model.train.pieces import copy_pieces, cut, join, read_manifest

# What training imports beside torch and numpy.
PACKAGES = (
    "gguf", "msgspec", "pyyaml", "safetensors", "tokenizers", "zstandard", "tree-sitter", "tree-sitter-c",
    "tree-sitter-cpp", "tree-sitter-go", "tree-sitter-java", "tree-sitter-javascript", "tree-sitter-python",
    "tree-sitter-rust", "tree-sitter-typescript",
)  # fmt: skip
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_5", "manylinux1")
# A device machine sends back 8 files of 16 MiB at most; an adapter is not to be larger than 60 MB.
OUT_BYTES = 15_000_000
START = "start.safetensors"


class RemoteError(LacunaError):
    """The run on the lent machine cannot be started, found or ended."""


def download_wheels(folder: Path, python: str) -> list[Path]:
    """Fetch the wheels of :data:`PACKAGES`, as they are installed here, for another version of Python."""
    pins = [f"{name}=={importlib.metadata.version(name)}" for name in PACKAGES]
    platforms = [f"--platform={platform}_x86_64" for platform in PLATFORMS]
    options = ["--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={python}", *platforms]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "-d", folder, *options, *pins], check=True)
    return sorted(folder.glob("*.whl"))


def bundle(out: Path, wheels: list[Path], weights: Path, shards: Path, start_from: Path | None, size: int) -> None:
    """Cut wheels, base weights and shards into pieces, in the order in which training needs them."""
    out.mkdir(parents=True, exist_ok=True)
    files = [*wheels, weights, *sorted(shards.glob("held_out-*.shard"))]
    if start_from is not None:
        files.append(Path(shutil.copy(start_from, out / START)))
    manifest = cut([*files, *sorted(shards.glob("train-*.shard"))], out, size)
    print(f"{len(manifest.files)} files in {len(manifest.pieces)} pieces in {out}")


class Home:
    """The folder of a run on the lent machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.pieces = self.folder / "pieces"
        self.files = self.folder / "files"
        self.site = self.folder / "site"
        self.code = self.folder / "code"
        self.out = self.folder / "out"
        self.log = self.folder / "run.log"
        self._lock = self.folder / "lock"

    def receive(self, source: Path) -> None:
        """Take the pieces of ``source`` in and write the files that are complete by now; unpack wheels."""
        copy_pieces(source, self.pieces)
        missing = join(self.pieces, self.files)
        for wheel in self.files.glob("*.whl"):
            if not (self.site / wheel.name).exists():
                zipfile.ZipFile(wheel).extractall(self.site)
                (self.site / wheel.name).touch()
        print(f"still missing: {', '.join(missing)}" if missing else "all files are here")

    def start(self, recipe: Path) -> None:
        """Train in the background, on a copy of the code, from the last checkpoint if there is one."""
        if self.running():
            raise RemoteError(f"{self.folder}: a run is at work already; end it first with: stop")
        for package in ("lacuna_model", "lacuna_kernels"):
            home = Path(importlib.import_module(package).__path__[0])
            skipped = shutil.ignore_patterns("__pycache__", "adapters")
            shutil.copytree(home, self.code / package, ignore=skipped, dirs_exist_ok=True)
        shutil.copy(recipe, self.folder / "recipe.json")
        paths = os.pathsep.join(map(str, (self.code, self.site)))
        command = [sys.executable, "-m", "lacuna_model.train.remote", "work", str(self.folder)]
        with self.log.open("ab") as log:
            environment = os.environ | {"PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}
            # A session of its own: what a command leaves running is killed when the command returns.
            subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=self.folder, start_new_session=True)
        deadline = time.monotonic() + 10
        while not self.running() and time.monotonic() < deadline:
            time.sleep(0.1)
        print("started" if self.running() else f"did not start; see {self.log}")

    def work(self) -> None:
        """Train, in the process that ``start`` made."""
        from lacuna_model.train import run
        from lacuna_model.train.loop import CHECKPOINT
        from lacuna_model.train.recipe import read_recipe
        from lacuna_model.train.throughput import describe

        with self._locked():
            recipe = read_recipe(self.folder / "recipe.json")
            names = [part.name for part in read_manifest(self.pieces).files]
            (weights,) = self.files.glob("*.gguf")
            run.train(
                run.Base(weights),
                self.files,
                self.out,
                recipe,
                lambda figures: print(describe(figures)),
                resume=(self.out / CHECKPOINT).exists(),
                start_from=self.files / START if START in names else None,
                expected=[name for name in names if name.startswith("train-")],
            )
            print("done")

    def watch(self, seconds: float, out: Path | None) -> None:
        """Show the run's log until it ends or the time is up, then cut its newest adapter into pieces in ``out``."""
        deadline, shown = time.monotonic() + seconds, max(0, self.log.stat().st_size - 2000)
        while time.monotonic() < deadline:
            alive = self.running()
            with self.log.open("rb") as log:
                log.seek(shown)
                text = log.read()
            shown += len(text)
            print(text.decode(errors="replace"), end="", flush=True)
            if not alive:
                break
            time.sleep(1)
        print("running" if self.running() else "ended")
        if out is not None:
            self.collect(out)

    def collect(self, out: Path) -> None:
        """Cut the newest adapter and the logs into pieces in ``out``."""
        # From a copy, for the run goes on writing.
        copies = self.folder / "collected"
        copies.mkdir(exist_ok=True)
        files = [*self.out.glob("*.safetensors"), *self.out.glob("*.jsonl"), self.log]
        cut([Path(shutil.copy(path, copies)) for path in files], out, OUT_BYTES)

    def stop(self) -> None:
        """Ask the run to save and end, and wait until it has."""
        if self.running():
            os.kill(int(self._lock.read_text()), signal.SIGTERM)
        while self.running():
            time.sleep(0.2)
        print("ended")

    def running(self) -> bool:
        """Whether a run holds the lock; one that was killed holds none."""
        try:
            with self._lock.open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock.open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one verb of the command line; a refusal is one line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lacuna_model.train.remote", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    made = verbs.add_parser("bundle", help="here: cut wheels, weights and shards into pieces")
    made.add_argument("out", type=Path)
    made.add_argument("--weights", type=Path, required=True, help="the GGUF of the base")
    made.add_argument("--shards", type=Path, required=True)
    made.add_argument("--from", dest="start_from", type=Path, help="an adapter to begin with")
    made.add_argument("--piece-mb", type=float, default=45.0)
    made.add_argument("--python", default="3.12", help="the version of Python there")
    joined = verbs.add_parser("join", help="here: put the files together that `watch` handed out")
    joined.add_argument("pieces", type=Path)
    joined.add_argument("out", type=Path)
    for verb, summary in {
        "receive": "there: take pieces in",
        "start": "there: train in the background",
        "watch": "there: wait, and hand out the adapter",
        "stop": "there: save and end",
        "work": "what `start` runs",
    }.items():
        there = verbs.add_parser(verb, help=summary)
        there.add_argument("home", type=Path)
        if verb == "receive":
            there.add_argument("pieces", type=Path)
        elif verb == "start":
            there.add_argument("--recipe", type=Path, required=True)
        elif verb == "watch":
            there.add_argument("--seconds", type=float, default=0.0)
            there.add_argument("--out", type=Path)
    try:
        _run(parser.parse_args(arguments))
    except LacunaError as error:
        sys.exit(f"lacuna: {error}")


def _run(given: argparse.Namespace) -> None:
    match given.verb:
        case "bundle":
            size = int(given.piece_mb * 1e6)
            wheels = download_wheels(given.out / "wheels", given.python)
            bundle(given.out, wheels, given.weights, given.shards, given.start_from, size)
        case "join":
            if missing := join(given.pieces, given.out):
                raise RemoteError(f"{given.pieces}: pieces of {', '.join(missing)} are missing")
        case "receive":
            Home(given.home).receive(given.pieces)
        case "start":
            Home(given.home).start(given.recipe)
        case "work":
            Home(given.home).work()
        case "watch":
            Home(given.home).watch(given.seconds, given.out)
        case "stop":
            Home(given.home).stop()


if __name__ == "__main__":
    main()
