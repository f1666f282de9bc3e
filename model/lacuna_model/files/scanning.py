"""Decides which files of a workspace may be read, and reads their text.

Left out are files that git ignores, hidden folders, dependencies and virtual environments, secrets, generated and
binary files, names that are not UTF-8, and files over the limits. Links are not followed, so nothing outside the
workspace is read.
``.lacunaignore``, written like ``.gitignore``, leaves out more; its line ``*`` switches a workspace off.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from lacuna_model.files.ignore import IgnoreRules
from lacuna_model.files.opening import Mark, absolute, generated_head, generated_name, listed, minified, read_within
from lacuna_model.files.secrets import holds_credential, is_secret
from lacuna_model.text.lines import well_formed

_DEPENDENCIES = frozenset({"node_modules", "bower_components", "site-packages", "__pycache__", "__pypackages__"})
# Files that mark a folder as a virtual environment or a cache (PEP 405, bford.info/cachedir).
_MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
# Binary files, and text that is not written by hand.
_NO_SOURCE = re.compile(
    r"(?i)\.git|(package-lock|npm-shrinkwrap)\.json|pnpm-lock\.yaml|.*\.(7z|a|avif|bin|bmp|bz2|class|csv|dat|db|deb|dll|dmg|docx?|"
    r"dylib|eot|exe|flac|gguf|gif|gz|h5|icns|ico|ipynb|iso|jar|jpe?g|jsonl|lib|lock|log|lz4|map|mo|mov|mp[34]|np[yz]|o|"
    r"obj|odt|ogg|onnx|otf|parquet|pdf|pkl|png|pot?|pptx?|psd|pth?|py[cdo]|rar|rlib|rpm|safetensors|so|sqlite3?|sum|svg|"
    r"tar|tgz|tiff?|tsv|ttf|wasm|wav|webm|webp|whl|woff2?|xlsx?|xz|zip|zst)"
)


MAX_FILE_BYTES = 400_000


def scan(
    root: Path,
    *,
    max_file_bytes: int = MAX_FILE_BYTES,
    max_files: int = 50_000,
    max_total_bytes: int = 20_000_000,
) -> Iterator[tuple[Path, Mark]]:
    """Walk a workspace: the files of a folder by name, then its folders; only ignore files are opened.

    Yields absolute paths. Lazy, so that the caller can pause between files. Folders that cannot be listed are skipped.
    """
    num_files = total_bytes = 0
    root = absolute(root)
    open_folders = [(root, "", IgnoreRules.of(root))]
    while open_folders:
        folder, inside, rules = open_folders.pop()
        entries = listed(folder)
        if inside and not _MARKS.isdisjoint(entry.name for entry in entries):
            continue
        place = folder.as_posix().rstrip("/") + "/"
        for entry in entries:
            if not _is_source(entry.name, inside + entry.name) or rules.ignores(place + entry.name):
                continue
            if num_files == max_files:
                return
            size, _ = mark = _mark(entry)
            if 0 < size <= min(max_file_bytes, max_total_bytes - total_bytes):
                num_files, total_bytes = num_files + 1, total_bytes + size
                yield folder / entry.name, mark
        for entry in reversed(entries):
            name = entry.name
            if entry.is_dir(follow_symlinks=False) and not (_is_closed(name) or rules.ignores(f"{place}{name}/")):
                open_folders.append((folder / name, f"{inside}{name}/", IgnoreRules(folder / name, rules)))


def admits(root: Path, path: Path) -> bool:
    """Whether :func:`scan` would yield ``path``, which may not be on disk yet; limits on sizes and numbers aside."""
    root, path = absolute(root), absolute(path)
    if not path.is_relative_to(root):
        return False
    inside = path.relative_to(root)
    rules, folder = IgnoreRules.of(root), root
    for name in inside.parts[:-1]:
        folder /= name
        marked = any(os.path.exists(folder / mark) for mark in _MARKS)
        if marked or _is_closed(name) or rules.ignores(f"{folder.as_posix()}/"):
            return False
        rules = IgnoreRules(folder, rules)
    return _is_source(path.name, inside.as_posix()) and not rules.ignores(path.as_posix())


def read_source(root: Path, path: Path, limit: int = MAX_FILE_BYTES) -> str | None:
    """The text of a file below ``root``, unchanged, line ends included.

    None where :func:`read_within` returns None, and where the text is not UTF-8, is generated or minified, or holds a
    private key or another credential.
    """
    data = read_within(root, path, limit)
    try:
        text = data.decode("utf-8") if data is not None else ""
    except UnicodeDecodeError:
        return None
    return text if data is not None and quotable(text) else None


def quotable(text: str) -> bool:
    """Whether a text is written by hand and holds no credentials."""
    return not ("\0" in text or generated_head(text) or minified(text) or holds_credential(text))


def _mark(entry: os.DirEntry[str]) -> Mark:
    """The mark of a file; zeros where it is not regular, or was removed since it was listed."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return 0, 0
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (0, 0)


def _is_closed(name: str) -> bool:
    return name.startswith(".") or name in _DEPENDENCIES or not _is_utf8(name)


def _is_source(name: str, inside: str) -> bool:
    """Whether a file's name suggests hand-written text that may be read."""
    return _is_utf8(name) and not (_NO_SOURCE.fullmatch(name) or generated_name(name) or is_secret(inside))


def _is_utf8(name: str) -> bool:
    """Whether a name is UTF-8 on disk, as everything is that a prompt or an index names."""
    return name == well_formed(name)
