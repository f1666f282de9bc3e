"""Nested ignore files: ``.gitignore``, ``.git/info/exclude`` and Lacuna's own ``.lacunaignore``, by git's rules."""

import codecs
import os
import re
from pathlib import Path

from lacuna_model.files.ignore_lines import compiled
from lacuna_model.files.opening import read_within
from lacuna_model.files.root import find_repository

# Later ones outrank earlier ones of the same folder, and all of them the repository's own file. A `.lacunaignore` with
# the line `*` switches a workspace off.
IGNORE_FILES = (".gitignore", ".lacunaignore")
EXCLUDE = "info/exclude"
# A work tree or submodule has a file `.git` that names its repository, which may name another one that it belongs to.
MAX_POINTER_BYTES = 10_000
# A longer ignore file is not read, nor is one that is a link; git does not follow such links either.
MAX_BYTES = 1_000_000
# What the lines with wildcards of a folder and of those above it may cost, since each is tried at every path: their
# characters, and so many more for each. Where they cost more, everything in the folder is ignored.
MAX_COST, COST_OF_A_LINE = 200_000, 100
# Whether a line ignores what it names, after its number: of several lines, the last one counts.
Verdict = tuple[int, bool]
_NONE: Verdict = (-1, False)


class IgnoreRules:
    """The ignore rules of a folder; its own files outrank those of the folders above it."""

    def __init__(self, folder: Path, above: "IgnoreRules | None" = None) -> None:
        self._above = above
        self._prefix = _as_git(folder.as_posix().rstrip("/") + "/")
        self._names: dict[str, Verdict] = {}
        self._paths: dict[str, Verdict] = {}
        self._patterns: list[tuple[re.Pattern[str], bool, bool, Verdict]] = []
        self._cost: int = above._cost if above is not None else 0
        for number, line in enumerate(line for place, name in _files(folder) for line in _lines(place, name)):
            self._add(line, number)
        self._patterns.reverse()

    @classmethod
    def of(cls, root: Path) -> "IgnoreRules":
        """The rules of a workspace, with those of the folders above it up to the root of its repository."""
        above = None
        for folder in reversed(_from_repository(root)):
            above = cls(folder, above)
        assert above is not None
        return above

    def ignores(self, path: str) -> bool:
        """Whether git would leave out ``path``, absolute with forward slashes; that of a folder ends in a slash.

        The caller must have checked the folders above it: nothing inside an ignored folder can be kept.
        """
        if self._cost > MAX_COST:
            return True
        path = _as_git(path)
        rules: IgnoreRules | None = self
        while rules is not None:
            number, ignored = rules._verdict(path[len(rules._prefix) :])
            if number >= 0:
                return ignored
            rules = rules._above
        return False

    def _add(self, line: str, number: int) -> None:
        found = compiled(line) if self._cost <= MAX_COST else None
        if found is None:
            return
        verdict = (number, found.ignored)
        if found.literal:
            known = self._paths if found.anchored else self._names
            known[f"{found.text}/" if found.folders else found.text] = verdict
            return
        self._cost += len(line) + COST_OF_A_LINE
        if self._cost <= MAX_COST:
            pattern = re.compile(found.text, re.DOTALL)
            self._patterns.append((pattern, found.anchored, found.folders, verdict))

    def _verdict(self, path: str) -> Verdict:
        """The last line that names this very path, given inside the folder; a number below 0 if there is none."""
        bare = path.removesuffix("/")
        name = bare.rpartition("/")[2]
        best = max(self._names.get(name, _NONE), self._paths.get(bare, _NONE))
        if is_folder := bare != path:
            best = max(best, self._names.get(f"{name}/", _NONE), self._paths.get(path, _NONE))
        for pattern, anchored, folders, verdict in self._patterns:
            if verdict < best:
                break
            if (is_folder or not folders) and pattern.fullmatch(bare if anchored else name):
                return verdict
        return best


def is_rules(path: str) -> bool:
    """Whether a file may hold ignore rules, by its name."""
    return os.path.basename(path) in IGNORE_FILES or path.replace(os.sep, "/").endswith(f"/{EXCLUDE}")


def stamps(root: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """What changes with the folder at ``root``, and with its ignore files and those of the folders above it."""
    files = [place / name for folder in _from_repository(root) for place, name in _files(folder)]
    return (_stamp(root, is_folder=True), *map(_stamp, files))


def _stamp(path: Path, *, is_folder: bool = False) -> tuple[int, int, int] | None:
    """Which file a path leads to, and its size and modification time; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, 0, 0) if is_folder else (status.st_ino, status.st_size, status.st_mtime_ns)


def _from_repository(root: Path) -> list[Path]:
    """``root`` and the folders above it, up to that of its repository."""
    repository = find_repository(root) or root
    return [folder for folder in (root, *root.parents) if folder == repository or repository in folder.parents]


def _files(folder: Path) -> list[tuple[Path, str]]:
    """The places of a folder's ignore files, whether or not they exist: for each a folder, and the path inside it."""
    git = folder / ".git"
    if os.path.isfile(git):
        git = _named_by(_named_by(git, "gitdir: ") / "commondir")
    return [(git, EXCLUDE), *((folder, name) for name in IGNORE_FILES)]


def _named_by(file: Path, key: str = "") -> Path:
    """The folder that the line of a file names; without such a line, the file's own folder."""
    line = os.fsdecode(read_within(file.parent, file, MAX_POINTER_BYTES) or b"").rstrip("\r\n")
    named = line.removeprefix(key) if line.startswith(key) and "\0" not in line else ""
    return Path(os.path.realpath(file.parent / named))


def _lines(folder: Path, name: str) -> list[str]:
    data = read_within(folder, folder / name, MAX_BYTES)
    if data is None:  # most folders have none
        return []
    return [line.removesuffix("\r") for line in data.removeprefix(codecs.BOM_UTF8).decode("latin-1").split("\n")]


def _as_git(path: str) -> str:
    """A path with one character for each of its bytes: git's wildcards match bytes."""
    return os.fsencode(path).decode("latin-1")
