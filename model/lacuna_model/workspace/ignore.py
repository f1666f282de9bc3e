"""Nested ignore files: ``.gitignore``, ``.git/info/exclude`` and Lacuna's own ``.lacunaignore``, by git's rules."""

from collections.abc import Iterable
from pathlib import Path

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lacuna_model.workspace.root import find_repository

# Later ones outrank earlier ones of the same folder. A `.lacunaignore` that says `*` switches a workspace off.
IGNORE_FILES = (".git/info/exclude", ".gitignore", ".lacunaignore")


class IgnoreRules:
    """The ignore files that hold in a folder: its own outrank those of the folders above it."""

    def __init__(self, folder: Path, above: "IgnoreRules | None" = None) -> None:
        self._above = above
        self._prefix = folder.as_posix().rstrip("/") + "/"
        lines = [line for name in IGNORE_FILES for line in _lines(folder / name)]
        self._patterns = [pattern for pattern in _compiled(lines) if pattern.include is not None]
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
            for pattern in rules._patterns:
                if _names(pattern, inside):
                    return bool(pattern.include)
            rules = rules._above
        return False


def _names(pattern: GitIgnoreSpecPattern, path: str) -> bool:
    """Whether a pattern means this very file or folder; pathspec lets it mean what lies inside as well."""
    return pattern.regex is not None and any(match.end() == len(path) for match in pattern.regex.finditer(path))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("utf-8", errors="replace").splitlines()
    except OSError:  # most folders have none
        return []


def _compiled(lines: Iterable[str]) -> Iterable[GitIgnoreSpecPattern]:
    for line in lines:
        # To git `a/**` is what lies inside `a`, to pathspec `a` as well.
        line = f"{line.rstrip()}/*" if line.rstrip().endswith("/**") else line
        try:
            yield GitIgnoreSpecPattern(line)
        except GitIgnorePatternError:  # git too passes over what is no pattern
            continue
