import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.files.scanning import admits, read_source, scan

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----\n"


def names(root: Path, **limits: int) -> list[str]:
    return [file.relative_to(root).as_posix() for file, _ in scan(root, **limits)]


@pytest.fixture
def write_files(tmp_path: Path) -> Callable[..., Path]:
    """Writes files of a workspace, text by path."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        return tmp_path

    return write


def test_files_come_folder_by_folder_in_order(write_files: Callable[..., Path]) -> None:
    root = write_files({name: "x = 1\n" for name in ("b.py", "a/z.py", "a/b/c.py", "Z.py", "a.md")})
    assert names(root) == ["Z.py", "a.md", "b.py", "a/z.py", "a/b/c.py"]
    status = (root / "Z.py").stat()
    assert next(scan(root)) == (root / "Z.py", (status.st_size, status.st_mtime_ns))


def test_generated_and_foreign_files_are_left_out(write_files: Callable[..., Path]) -> None:
    left_out = (
        "node_modules/a/index.js", ".git/config.py", ".venv/lib/a.py", "env/lib/a.py", "cache/a.py", "logo.png",
        "uv.lock", "app.min.js", "api_pb2.py", "package-lock.json", "data.csv", "lib/python3.11/site-packages/a.py",
        "empty.py", "submodule/.git",
    )  # fmt: skip
    root = write_files({name: "x = 1\n" for name in (*left_out, "src/a.py")})
    (root / "empty.py").write_text("")
    write_files(
        {"env/pyvenv.cfg": "home = /usr\n", "cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n"}
    )
    assert names(root) == ["src/a.py"]


def test_the_limits_of_files_and_bytes_are_kept(write_files: Callable[..., Path]) -> None:
    root = write_files(
        {f"{name}.py": "x" * size for name, size in (("a", 30), ("b", 80), ("c", 30), ("d", 30), ("e", 5))}
    )
    assert names(root, max_file_bytes=50) == ["a.py", "c.py", "d.py", "e.py"]
    assert names(root, max_files=2) == ["a.py", "b.py"]
    assert names(root, max_file_bytes=50, max_total_bytes=70) == ["a.py", "c.py", "e.py"]


def test_a_workspace_is_switched_off_by_a_file(write_files: Callable[..., Path]) -> None:
    root = write_files({"a.py": "x = 1\n", "b/c.py": "x = 1\n"})
    write_files({".lacunaignore": "*\n"})
    assert names(root) == []
    assert not admits(root, root / "b/c.py")


def test_the_ignore_files_of_a_repository_hold_in_its_folders(write_files: Callable[..., Path]) -> None:
    root = write_files(
        {".gitignore": "local.py\n/tools/old\n", "tools/a.py": "1", "tools/old/b.py": "1", "tools/local.py": "1"}
    )
    (root / ".git/info").mkdir(parents=True)
    (root / ".git/info/exclude").write_text("mine.py\n")
    write_files({"tools/mine.py": "1"})
    assert names(root / "tools") == ["a.py"]
    assert names(root) == [".gitignore", "tools/a.py"]


def test_a_workspace_that_a_link_names_has_the_rules_of_the_folders_above_it(
    write_files: Callable[..., Path], tmp_path: Path
) -> None:
    root = write_files({".gitignore": "local.py\n/tools/old\n", "tools/a.py": "1", "tools/old/b.py": "1"})
    write_files({"tools/local.py": "1", "tools/in/local.py": "1", "tools/in/c.py": "1"})
    (root / ".git").mkdir()
    link = tmp_path / "link"
    link.symlink_to(root / "tools")
    assert names(link) == names(root / "tools") == ["a.py", "in/c.py"]
    assert admits(link, link / "in/c.py")
    assert not admits(link, link / "in/local.py")


PATTERNS = st.lists(
    st.sampled_from(
        ["*.py", "!*.py", "a", "a/", "/a", "!a/", "b/**", "**/c", "a/*", "!a/x.py", "/*", "!/b", "*/x.py", "x.*",
         "!x.py", "a/b", "a/**/x.py", "**", "!**/", "[ab]", "?.py", "# a", "", "!", "\\", "y.py  ", "b/", "!b/c/", "*/",
         "!a/b/x.py", "***x*.p?", "[!a]/**/[x-z].py", "[[:alpha:]].py", "[]x]*", "a[/]b", "/**", "\\!x.py",
         "**/b/**/x*", "[x.py", "/a//b", "[^[:alpha:]x].py", "x.py\\ ", "y.py\r"]
    ),
    max_size=5,
)  # fmt: skip
TREE = [f"{folder}{name}.py" for folder in ("", "a/", "b/", "a/b/", "b/c/", "c/a/") for name in "xy"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name in TREE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("1")
    return root


@settings(max_examples=80, deadline=None)
@given(top=PATTERNS, inner=PATTERNS)
def test_files_are_ignored_as_git_ignores_them(repository: Path, top: list[str], inner: list[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(top))
    (repository / "a/.gitignore").write_text("\n".join(inner))
    command = ["git", "-C", str(repository), "ls-files", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    scanned = [name for name in names(repository) if name.endswith(".py")]
    assert sorted(scanned) == sorted(name for name in listed if name.endswith(".py"))
    assert scanned == [name for name in scanned if admits(repository, repository / name)]
    assert not any(admits(repository, repository / name) for name in set(TREE) - set(scanned))


@pytest.mark.parametrize(
    "line",
    [
        "*****c",
        "a*" * 60 + "b",
        "**a" * 60 + "b",
        "**/a/" * 40 + "b",
        "a?*[ab]" * 40 + "c",
        "*[a]" * 60 + "c",
        "**/*a*a*a/" * 20 + "b",
    ],
)
def test_a_line_with_many_stars_ends(write_files: Callable[..., Path], line: str) -> None:
    folder = "/".join(["a" * 100] * 9)
    root = write_files({".gitignore": f"{line}\n", f"{folder}/{'a' * 200}.py": "1"})
    assert names(root) == [".gitignore", f"{folder}/{'a' * 200}.py"]


def test_long_ignore_files_end(write_files: Callable[..., Path]) -> None:
    """A file of names is looked up; one of too many wildcards ignores its folder, and those of others still hold."""
    words = "\n".join(f"word{number}" for number in range(100_000))
    files = {f"b/{folder}/x.py": "1" for folder in range(50)}
    root = write_files({".git/info/exclude": words, "word7": "1", "a.py": "1", **files})
    assert names(root) == ["a.py", *sorted(files)]
    write_files({"b/7/.gitignore": "\n".join(f"{number}*" for number in range(50_000))})
    assert names(root) == ["a.py", *sorted(set(files) - {"b/7/x.py"})]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
        ("größe = '👍'\n".encode(), "größe = '👍'\n"),
        (b"\xff\xfe", None),
        (b"a\0b", None),
        (b"# Generated by protoc. DO NOT EDIT!\nx = 1\n", None),
        (b"x=1;" * 400, None),
        (KEY.encode(), None),
        (b"x = 1\n" + KEY.replace("\n", "\r\n").encode(), None),
        (b'token = "ghp_' + b"a1B2" * 9 + b'"\n', None),
    ],
)
def test_binary_generated_and_secret_files_are_not_read(tmp_path: Path, data: bytes, text: str | None) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(data)
    assert read_source(file.parent, file, 1_000_000) == text


def test_names_that_are_not_utf8_are_left_out(write_files: Callable[..., Path]) -> None:
    odd = os.fsdecode(b"caf\xe9")
    root = write_files({name: "x = 1\n" for name in ("a.py", f"{odd}.py", f"{odd}/b.py", "é.py")})
    assert names(root) == ["a.py", "é.py"]
    assert not admits(root, root / f"{odd}.py")
    assert not admits(root, root / odd / "b.py")
