"""Nested ignore files: ``.gitignore``, ``.git/info/exclude`` and Lacuna's own ``.lacunaignore``, by git's rules."""

import re
from collections.abc import Iterable
from pathlib import Path

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lacuna_model.files.opening import read_within
from lacuna_model.files.root import find_repository

# Later ones outrank earlier ones of the same folder. A `.lacunaignore` that says `*` switches a workspace off.
IGNORE_FILES = (".git/info/exclude", ".gitignore", ".lacunaignore")
IGNORE_NAMES = frozenset(name.rpartition("/")[2] for name in IGNORE_FILES)
# An ignore file that is longer says nothing; git's own are links as little as these.
MOST_BYTES = 1_000_000
# A line has at most so many `**`: each more may stand for any number of folders, and a match tries all of them.
MOST_ANY_DEPTH = 4
# In a pattern of pathspec: any run of characters but `/`, and what stands for a part of a name without being one.
_ANY = r"\[\^/\]\*"
_PIECE = re.compile(rf"{_ANY}((?:\\.|\[\^/\](?!\*)|\[[^\]]+\](?!\*)|[^\[\](){{}}.*+?|\\^$/])+)(?={_ANY})")


class IgnoreRules:
    """The ignore files that hold in a folder: its own outrank those of the folders above it."""

    def __init__(self, folder: Path, above: "IgnoreRules | None" = None) -> None:
        self._above = above
        self._prefix = folder.as_posix().rstrip("/") + "/"
        lines = [line for name in IGNORE_FILES for line in _lines(folder, name)]
        self._patterns = list(_compiled(lines))
        self._patterns.reverse()

    @classmethod
    def of(cls, root: Path) -> "IgnoreRules":
        """The rules of a workspace: where it lies inside a repository, those of the folders above it hold too."""
        repository = find_repository(root) or root
        above = None
        for folder in reversed([root, *root.parents]):
            if folder == repository or repository in folder.parents:
                above = cls(folder, above)
        assert above is not None
        return above

    def ignores(self, path: str) -> bool:
        """Whether git would leave out ``path``, absolute with forward slashes; that of a folder ends in a slash.

        The folders above it are taken to have been looked at: nothing below an ignored folder can be kept.
        """
        rules: IgnoreRules | None = self
        while rules is not None:
            inside = path[len(rules._prefix) :]
            for ignored, pattern in rules._patterns:
                if _names(pattern, inside):
                    return ignored
            rules = rules._above
        return False


def _names(pattern: re.Pattern[str], path: str) -> bool:
    """Whether a pattern means this very file or folder; pathspec lets it mean what lies inside as well."""
    return any(match.end() == len(path) for match in pattern.finditer(path))


def _lines(folder: Path, name: str) -> list[str]:
    data = read_within(folder, folder / name, MOST_BYTES)
    return [] if data is None else data.decode("utf-8", errors="replace").splitlines()  # most folders have none


def _compiled(lines: Iterable[str]) -> Iterable[tuple[bool, re.Pattern[str]]]:
    """Each line as a pattern, and whether it leaves out what it means or keeps it."""
    for line in lines:
        # To git `a/**` is what lies inside `a`, to pathspec `a` as well.
        line = _shallow(f"{line.rstrip()}/*" if line.rstrip().endswith("/**") else line)
        try:
            pattern = GitIgnoreSpecPattern(line)
        except GitIgnorePatternError:  # git too passes over what is no pattern
            continue
        if pattern.include is not None and pattern.regex is not None:
            yield pattern.include, re.compile(_atomic(pattern.regex.pattern))


def _shallow(line: str) -> str:
    """A line with few `**`: one that has more means all between its first and its last one, or nothing if it keeps."""
    if line.count("**") <= MOST_ANY_DEPTH:
        return line
    if line.startswith("!"):
        return ""
    return f"{line[: line.index('**')]}**{line[line.rindex('**') + 2 :]}"


def _atomic(pattern: str) -> str:
    """A pattern that matches the same, but tries each place of a literal between two `*` once.

    The first place that a literal is found at is as good as any later one, as long as another `*` follows. Without
    that a line of many stars takes years.
    """
    return _PIECE.sub(r"(?>[^/]*?\1)", pattern)
