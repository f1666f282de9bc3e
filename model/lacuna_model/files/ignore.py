"""Nested ignore files: ``.gitignore``, ``.git/info/exclude`` and Lacuna's own ``.lacunaignore``, by git's rules."""

import codecs
import os
import re
from pathlib import Path

from lacuna_model.files.ignore_lines import compiled
from lacuna_model.files.opening import read_within
from lacuna_model.files.root import find_repository

# Later ones outrank earlier ones of the same folder. A `.lacunaignore` with the line `*` switches a workspace off.
IGNORE_FILES = (".git/info/exclude", ".gitignore", ".lacunaignore")
IGNORE_NAMES = frozenset(name.rpartition("/")[2] for name in IGNORE_FILES)
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
        for number, line in enumerate(line for name in IGNORE_FILES for line in _lines(folder, name)):
            self._add(line, number)
        self._patterns.reverse()

    @classmethod
    def of(cls, root: Path) -> "IgnoreRules":
        """The rules of a workspace, with those of the folders above it up to the root of its repository."""
        repository = find_repository(root) or root
        above = None
        for folder in reversed([root, *root.parents]):
            if folder == repository or repository in folder.parents:
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


def _lines(folder: Path, name: str) -> list[str]:
    data = read_within(folder, folder / name, MAX_BYTES)
    if data is None:  # most folders have none
        return []
    return [line.removesuffix("\r") for line in data.removeprefix(codecs.BOM_UTF8).decode("latin-1").split("\n")]


def _as_git(path: str) -> str:
    """A path with one character for each of its bytes: git's wildcards match bytes."""
    return os.fsencode(path).decode("latin-1")
