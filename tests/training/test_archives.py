"""Packages are fetched with pip, npm and apt: all files of a package or none, and a failure is one line."""

import hashlib
import os
import stat
import zipfile
from pathlib import Path

import pytest

from lacuna_model.core.errors import DownloadError, NotPublishedError
from training.corpus import SOURCES
from training.packages import Package, Role
from training.registries import Npm, PyPI

COMMANDS = {
    "npm": "npm pack --ignore-scripts @scope/a@1-2",
    "debian-source": "apt-get source --download-only --only-source a=1-2",
    "debian-library": "apt-get download a=1-2",
}
BROKEN = {
    "npm": (
        "npm error code EAI_AGAIN\nnpm error request to the registry failed\nnpm error twice",
        "request to the reg",
    ),
    "debian-source": ("Reading package lists...\nE: You must put some 'deb-src' URIs in your list", "You must put"),
    "debian-library": ("Err:1 a\nE: Failed to fetch a\nE: Unable to fetch some", "Failed to fetch a"),
}


def package(source: str) -> Package:
    return Package(source, "@scope/a" if source == "npm" else "a", "1-2", Role.TRAIN)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only one on PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def fake_program(programs: Path, source: str, script: str) -> None:
    """Writes a fake package manager, which logs its calls."""
    path = programs / COMMANDS[source].split()[0]
    log = programs.parent / "called"
    path.write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >> {log}\n{script}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize("source", COMMANDS)
def test_a_package_is_fetched_once_by_name_and_version(programs: Path, tmp_path: Path, source: str) -> None:
    fake_program(programs, source, "echo data > a_1.orig.tar.gz")
    paths = SOURCES[source].fetch(package(source), tmp_path / "kept")
    assert [path.name for path in paths] == ["a_1.orig.tar.gz"]
    assert paths == SOURCES[source].fetch(package(source), tmp_path / "kept")
    assert (tmp_path / "called").read_text() == COMMANDS[source] + "\n"
    assert paths[0].is_relative_to(tmp_path / "kept" / source)


def test_of_a_source_package_only_the_tarballs_are_read(programs: Path, tmp_path: Path) -> None:
    names = "a_1-2.dsc a_1.orig.tar.xz a_1.orig.tar.xz.asc a_1.orig-part.tar.gz a_1-2.debian.tar.xz"
    fake_program(programs, "debian-source", f"for name in {names}; do echo data > $name; done")
    paths = SOURCES["debian-source"].fetch(package("debian-source"), tmp_path)
    assert [path.name for path in paths] == ["a_1-2.debian.tar.xz", "a_1.orig-part.tar.gz", "a_1.orig.tar.xz"]


@pytest.mark.parametrize("source", BROKEN)
def test_a_failure_is_one_line_and_leaves_no_files(programs: Path, tmp_path: Path, source: str) -> None:
    output, reason = BROKEN[source]
    fake_program(programs, source, f'echo "{output}" >&2; echo half > half; exit 1')
    with pytest.raises(DownloadError, match=f" cannot fetch .*a[@=]1-2: {reason}") as caught:
        SOURCES[source].fetch(package(source), tmp_path / "kept")
    assert not isinstance(caught.value, NotPublishedError)
    assert "\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "kept").rglob("*")] == [source]
    fake_program(programs, source, "echo data > a.tgz")
    SOURCES[source].fetch(package(source), tmp_path / "kept")


def write_wheel(links: Path, version: str) -> None:
    about = f"a-{version}.dist-info"
    with zipfile.ZipFile(links / f"a-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: a\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def test_a_wheel_is_fetched_with_the_users_pip_and_a_source_distribution_is_not(links: Path, tmp_path: Path) -> None:
    write_wheel(links, "1")
    (links / "b-1.tar.gz").write_bytes(b"a source distribution, which pip would build")
    (path,) = SOURCES["pypi"].fetch(Package("pypi", "a", "1", Role.TRAIN), tmp_path / "kept")
    assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256((links / path.name).read_bytes()).digest()
    for name, version in (("a", "2"), ("b", "1")):
        with pytest.raises(NotPublishedError, match=f"pip download {name}=={version}: No matching distribution"):
            SOURCES["pypi"].fetch(Package("pypi", name, version, Role.TRAIN), tmp_path / "kept")
    assert sorted(os.listdir(tmp_path / "kept")) == ["pypi"]


def test_the_release_before_one_is_the_newest_that_is_older(links: Path, programs: Path, tmp_path: Path) -> None:
    for version in ("1", "1.4", "2"):
        write_wheel(links, version)
    before, paths = PyPI().before(Package("pypi", "a", "2", Role.TRAIN), tmp_path)
    assert (before.version, [path.name for path in paths]) == ("1.4", ["a-1.4-py3-none-any.whl"])
    fake_program(programs, "npm", "echo data > scope-a-1.9.2.tgz")
    before, _ = Npm().before(Package("npm", "@scope/a", "2.0.0", Role.TRAIN), tmp_path)
    assert before.version == "1.9.2"
    assert (tmp_path / "called").read_text() == "npm pack --ignore-scripts @scope/a@<2.0.0\n"
