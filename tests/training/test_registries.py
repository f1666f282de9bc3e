"""Packages are fetched with pip, npm and apt, all files of a package or none, and read with their licences."""

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from lacuna_model.core.errors import DownloadError, NotPublishedError
from training.corpus import SOURCES
from training.licences import FileLicences
from training.packages import CorpusError, Package, Role
from training.registries import DebianLibraries, DebianSources, Npm, PyPI, read_archive

COPYRIGHT = """Format: copyright-format/1.0

Files: *
Copyright: somebody
License: Expat
 Permission is hereby granted

Files: lib/copied/*
       other.c
Copyright: another
License: GPL-2+
"""


def tarball(path: Path, files: Mapping[str, str]) -> Path:
    with tarfile.open(path, "w:xz" if path.suffix == ".xz" else "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def wheel(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def debian_package(path: Path, files: Mapping[str, str]) -> Path:
    data = tarball(path.with_suffix(".tar.xz"), files).read_bytes()
    members = [(b"debian-binary", b"2.0\n"), (b"control.tar.xz", b"odd"), (b"data.tar.xz", data)]
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, content in members:
            file.write(b"%-16s%-12d%-6d%-6d%-8d%-10d`\n" % (name, 0, 0, 0, 100644, len(content)))
            file.write(content + b"\n" * (len(content) % 2))
    return path


def wheel_of(about: str, more: Mapping[str, str], path: Path) -> Path:
    metadata = f"Metadata-Version: 2.1\nName: a\nVersion: 1\n{about}"
    return wheel(path / "a-1-py3-none-any.whl", {"a-1.dist-info/METADATA": metadata, **more})


def test_a_wheel_is_read_with_its_licence(tmp_path: Path) -> None:
    files = {"a/b.py": "x = 1\n", "a/b.so": "", "README.md": "no"}
    found, (file,) = PyPI().contents([wheel_of("License: MIT\n", files, tmp_path)])
    assert (found.package, file) == ("MIT", ("a/b.py", b"x = 1\n", "MIT"))


def test_a_licence_file_counts_if_the_metadata_has_no_licence(tmp_path: Path) -> None:
    text = "Permission is hereby granted, free of charge, to any person obtaining a copy " * 4
    found, _ = PyPI().contents([wheel_of("", {"a-1.dist-info/LICENSE.txt": text}, tmp_path)])
    assert (found.package, found.stated) == ("MIT", "only a licence file")


@pytest.mark.parametrize(
    ("field", "licence"),
    [
        ({"license": "MIT"}, "MIT"),
        ({"license": {"type": "ISC"}}, "ISC"),
        ({"licenses": [{"type": "MIT"}, {"type": "Apache-2.0"}]}, "MIT OR Apache-2.0"),
        ({"license": "GPL-3.0"}, None),
        ({}, None),
    ],
)
def test_an_npm_package_is_read_with_its_licence(tmp_path: Path, field: dict[str, object], licence: str | None) -> None:
    files = {"package/package.json": json.dumps(field), "package/lib/a.js": "1;"}
    files |= {"package/a.d.ts": "", "package/a.py": ""}
    found, (file,) = Npm().contents([tarball(tmp_path / "a.tgz", files)])
    assert (found.package, file.path) == (licence, "lib/a.js")


def test_a_debian_package_has_a_licence_for_each_file(tmp_path: Path) -> None:
    files = {"a-1/src/a.c": "int a;", "a-1/lib/copied/b.c": "", "a-1/a.py": ""}
    upstream = tarball(tmp_path / "a_1.orig.tar.gz", files)
    part = tarball(tmp_path / "a_1.orig-part.tar.gz", {"part/other.c": ""})
    own = tarball(tmp_path / "a_1-1.debian.tar.xz", {"debian/copyright": COPYRIGHT, "debian/tests/t.c": ""})
    found, sources = DebianSources().contents([upstream, part, own])
    assert found.package == "MIT"
    licences = {file.path: file.licence for file in sources}
    assert licences == {"src/a.c": "MIT", "lib/copied/b.c": None, "part/other.c": "MIT"}
    root = "./usr/share/gocode/src/example.org/a"
    files = {f"{root}/a.go": "package a\n", f"{root}/lib/copied/b.go": "", "./usr/share/doc/a-dev/copyright": COPYRIGHT}
    _, sources = DebianLibraries().contents([debian_package(tmp_path / "a.deb", files)])
    assert [(file.path, file.licence) for file in sources] == [("a.go", "MIT"), ("lib/copied/b.go", None)]


@pytest.mark.parametrize(
    ("short", "licence"),
    [
        ("Expat or Apache-2", "MIT or Apache-2.0"),
        ("BSD-3-clause, and Expat", "BSD-3-Clause and MIT"),
        ("Apache-2.0 with LLVM exceptions", "Apache-2.0"),
        ("GPL-2 and Expat", None),
    ],
)
def test_debian_names_of_licences_are_translated(short: str, licence: str | None) -> None:
    found = FileLicences(f"Files: *\nLicense: {short}\n").of("a")
    assert (found and " ".join(found.split())) == licence


@pytest.mark.parametrize("name", ["a.tar.gz", "a.whl", "a.deb", "a.tar.xz"])
def test_a_damaged_archive_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    good = {"a.whl": wheel, "a.deb": debian_package}.get(name, tarball)(path, {"a/b.py": "x = 1\n" * 9999})
    path.write_bytes(good.read_bytes()[:-40] if name != "a.deb" else gzip.compress(b"no"))
    with pytest.raises(CorpusError, match=name.replace(".", r"\.")):
        list(read_archive(path, lambda name: True))


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
    files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: a\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    wheel(links / f"a-{version}-py3-none-any.whl", files)


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
