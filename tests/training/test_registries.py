"""How the packages of each registry are read."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from training.archives import Contents, read_archive
from training.licences import FileLicences
from training.packages import CorpusError, Package, Role
from training.registries import DebianLibraries, DebianSources, Npm, PyPI

MIT = "Metadata-Version: 2.1\nName: a\nVersion: 1\nLicense: MIT\n"
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


def package(source: str, name: str = "a", version: str = "1") -> Package:
    return Package(source, name, version, Role.TRAIN)


def paths(contents: Contents) -> list[str]:
    return [file.path for file in contents.files]


def test_a_wheel_is_read_with_its_licence(tmp_path: Path) -> None:
    files = {"a-1.dist-info/METADATA": MIT, "a/b.py": "x = 1\n", "a/b.so": "", "README.md": "no"}
    contents = PyPI().contents(package("pypi"), [wheel(tmp_path / "a-1-py3-none-any.whl", files)])
    assert contents.licence == "MIT"
    assert [(f.path, f.data, f.licence) for f in contents.files] == [("a/b.py", b"x = 1\n", "MIT")]


def test_a_licence_file_counts_if_the_metadata_has_no_licence(tmp_path: Path) -> None:
    text = "Permission is hereby granted, free of charge, to any person obtaining a copy " * 4
    about = "a-1.dist-info"
    files = {f"{about}/METADATA": "Metadata-Version: 2.1\nName: a\nVersion: 1\n", f"{about}/LICENSE.txt": text}
    contents = PyPI().contents(package("pypi"), [wheel(tmp_path / "a-1-py3-none-any.whl", files)])
    assert (contents.licence, contents.stated_licence) == ("MIT", "only a licence file")


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
    contents = Npm().contents(package("npm"), [tarball(tmp_path / "a.tgz", files)])
    assert (contents.licence, paths(contents)) == (licence, ["lib/a.js"])


def test_a_debian_source_package_has_a_licence_for_each_file(tmp_path: Path) -> None:
    files = {"a-1/src/a.c": "int a;", "a-1/lib/copied/b.c": "", "a-1/a.py": ""}
    upstream = tarball(tmp_path / "a_1.orig.tar.gz", files)
    part = tarball(tmp_path / "a_1.orig-part.tar.gz", {"part/other.c": ""})
    own = tarball(tmp_path / "a_1-1.debian.tar.xz", {"debian/copyright": COPYRIGHT, "debian/tests/t.c": ""})
    contents = DebianSources().contents(package("debian-source"), [upstream, part, own])
    assert contents.licence == "MIT"
    assert {f.path: f.licence for f in contents.files} == {
        "src/a.c": "MIT",
        "lib/copied/b.c": None,
        "part/other.c": "MIT",
    }


def test_a_debian_library_has_a_licence_for_each_file(tmp_path: Path) -> None:
    root = "./usr/share/gocode/src/example.org/a"
    files = {f"{root}/a.go": "package a\n", f"{root}/lib/copied/b.go": "", "./usr/share/doc/a-dev/copyright": COPYRIGHT}
    contents = DebianLibraries().contents(package("debian-library"), [debian_package(tmp_path / "a.deb", files)])
    assert [(f.path, f.licence) for f in contents.files] == [("a.go", "MIT"), ("lib/copied/b.go", None)]


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
