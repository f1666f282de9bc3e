"""Nested ignore files: ``.gitignore``, ``.git/info/exclude`` and Lacuna's own ``.lacunaignore``, by git's rules."""

import re
from collections.abc import Iterable
from pathlib import Path

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lacuna_model.files.opening import read_within
from lacuna_model.files.root import find_repository

# Later ones outrank earlier ones of the same folder. A `.lacunaignore` with the line `*` switches a workspace off.
IGNORE_FILES = (".git/info/exclude", ".gitignore", ".lacunaignore")
IGNORE_NAMES = frozenset(name.rpartition("/")[2] for name in IGNORE_FILES)
# A longer ignore file is not read, nor is one that is a link; git does not follow such links either.
MOST_BYTES = 1_000_000
# The most `**` of a line: each may match any number of folders, and a match tries all combinations.
MOST_ANY_DEPTH = 4
# In a regular expression from pathspec: any run of characters except `/`; and a literal between two such runs.
_ANY = r"\[\^/\]\*"
_PIECE = re.compile(rf"{_ANY}((?:\\.|\[\^/\](?!\*)|\[[^\]]+\](?!\*)|[^\[\](){{}}.*+?|\\^$/])+)(?={_ANY})")


class IgnoreRules:
    """The ignore rules of a folder; its own files outrank those of the folders above it."""

    def __init__(self, folder: Path, above: "IgnoreRules | None" = None) -> None:
        self._above = above
        self._prefix = folder.as_posix().rstrip("/") + "/"
        lines = [line for name in IGNORE_FILES for line in _lines(folder, name)]
        self._patterns = list(_compiled(lines))
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
        rules: IgnoreRules | None = self
        while rules is not None:
            inside = path[len(rules._prefix) :]
            for ignored, pattern in rules._patterns:
                if _names(pattern, inside):
                    return ignored
            rules = rules._above
        return False


def _names(pattern: re.Pattern[str], path: str) -> bool:
    """Whether a pattern matches this very file or folder; pathspec's patterns also match what lies inside."""
    return any(match.end() == len(path) for match in pattern.finditer(path))


def _lines(folder: Path, name: str) -> list[str]:
    data = read_within(folder, folder / name, MOST_BYTES)
    return [] if data is None else data.decode("utf-8", errors="replace").splitlines()  # most folders have none


def _compiled(lines: Iterable[str]) -> Iterable[tuple[bool, re.Pattern[str]]]:
    """Each line as a pattern, and whether it ignores the paths it matches (else it keeps them)."""
    for line in lines:
        # In git `a/**` matches what is inside `a`, in pathspec also `a` itself.
        line = _shallow(f"{line.rstrip()}/*" if line.rstrip().endswith("/**") else line)
        try:
            pattern = GitIgnoreSpecPattern(line)
        except GitIgnorePatternError:  # git also skips lines that are no pattern
            continue
        if pattern.include is not None and pattern.regex is not None:
            yield pattern.include, re.compile(_atomic(pattern.regex.pattern))


def _shallow(line: str) -> str:
    """A line with few `**`: if there are more, the first to the last become one, and a `!` line is dropped."""
    if line.count("**") <= MOST_ANY_DEPTH:
        return line
    if line.startswith("!"):
        return ""
    return f"{line[: line.index('**')]}**{line[line.rindex('**') + 2 :]}"


def _atomic(pattern: str) -> str:
    """A pattern that matches the same, but tries only the first place of a literal between two `*`.

    Any later place is equivalent as long as another `*` follows. Without this, a line with many stars takes exponential
    time.
    """
    return _PIECE.sub(r"(?>[^/]*?\1)", pattern)
