"""Downloads are verified, resumed and refused with the file's name."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from lacuna_model.errors import DownloadError
from lacuna_model.train import download
from lacuna_model.train.download import Artifact, NotPublishedError, fetch, fetch_document

DATA = bytes(range(256)) * 400


class Registry(BaseHTTPRequestHandler):
    """Serves DATA; `/cut` breaks off half-way when asked from the start, `/whole` knows no ranges."""

    ranges: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        self.ranges.append(wanted or "")
        if self.path == "/missing":
            self.send_error(404)
        elif start and self.path != "/whole":
            self.send_response(206 if start < len(DATA) else 416)
            self.end_headers()
            self.wfile.write(DATA[start:])
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(DATA)))
            self.end_headers()
            self.wfile.write(DATA[: len(DATA) // 2] if self.path == "/cut" else DATA)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output clean."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    Registry.ranges.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def artifact(url: str, data: bytes = DATA) -> Artifact:
    return Artifact(url, "file.tar.gz", f"sha256:{hashlib.sha256(data).hexdigest()}")


def test_a_download_that_was_cut_off_goes_on_where_it_was(registry: str, tmp_path: Path) -> None:
    assert fetch(artifact(f"{registry}/cut"), tmp_path).read_bytes() == DATA
    assert Registry.ranges == ["", f"bytes={len(DATA) // 2}-"]


def test_a_partial_file_of_an_earlier_run_is_continued(registry: str, tmp_path: Path) -> None:
    (tmp_path / "file.tar.gz.part").write_bytes(DATA[:1000])
    assert fetch(artifact(f"{registry}/file"), tmp_path).read_bytes() == DATA
    assert Registry.ranges == ["bytes=1000-"]


def test_a_partial_file_that_is_complete_is_taken(registry: str, tmp_path: Path) -> None:
    (tmp_path / "file.tar.gz.part").write_bytes(DATA)
    assert fetch(artifact(f"{registry}/file"), tmp_path).read_bytes() == DATA


def test_a_server_without_ranges_sends_everything_again(registry: str, tmp_path: Path) -> None:
    (tmp_path / "file.tar.gz.part").write_bytes(DATA[:1000])
    assert fetch(artifact(f"{registry}/whole"), tmp_path).read_bytes() == DATA


def test_what_is_here_is_not_downloaded_again_unless_it_is_damaged(registry: str, tmp_path: Path) -> None:
    path = fetch(artifact(f"{registry}/file"), tmp_path)
    fetch(artifact(f"{registry}/file"), tmp_path)
    assert Registry.ranges == [""]
    path.write_bytes(DATA[:-1])
    assert fetch(artifact(f"{registry}/file"), tmp_path).read_bytes() == DATA


def test_a_wrong_digest_is_refused_and_leaves_nothing(registry: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"file\.tar\.gz: the download of .* has digest"):
        fetch(artifact(f"{registry}/file", b"other"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_published_is_told_apart(registry: str, tmp_path: Path) -> None:
    with pytest.raises(NotPublishedError, match="missing: not published"):
        fetch(artifact(f"{registry}/missing"), tmp_path)


def test_a_registry_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    with pytest.raises(DownloadError, match=r"cannot download http://127\.0\.0\.1:9/x: .*run it again"):
        fetch(artifact("http://127.0.0.1:9/x"), tmp_path)


def test_a_full_disk_is_named(registry: str, tmp_path: Path) -> None:
    (tmp_path / "file.tar.gz.part").symlink_to("/dev/full")
    with pytest.raises(DownloadError, match=r"file\.tar\.gz\.part: cannot write the download: .*No space left"):
        fetch(artifact(f"{registry}/file"), tmp_path)


def test_documents_leave_no_file_behind(registry: str, tmp_path: Path) -> None:
    assert fetch_document(f"{registry}/file", tmp_path) == DATA
    assert list(tmp_path.iterdir()) == []
