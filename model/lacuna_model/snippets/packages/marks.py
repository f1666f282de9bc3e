"""Tells that files and folders have changed, by their sizes and modification times."""

from collections.abc import Iterable
from pathlib import Path


class Marks:
    """The sizes and modification times of some paths, which need not be there."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, int]] = {}

    def note(self, *paths: Path) -> None:
        """Watch further paths from now on."""
        for path in paths:
            if path not in self._known:
                self._known[path] = _mark(path)

    def have_changed(self) -> bool:
        """Whether one of the paths has changed, come or gone since it was noted or this was asked."""
        now = {path: _mark(path) for path in self._known}
        changed, self._known = now != self._known, now
        return changed


def mark_of(files: Iterable[Path]) -> tuple[int, int] | None:
    """The size of some files together, and when one was last modified (ns); None where one is gone."""
    marks = list(map(_mark, files))
    return (sum(size for size, _ in marks), max(time for _, time in marks)) if all(map(any, marks)) else None


def _mark(path: Path) -> tuple[int, int]:
    """Two zeros where nothing is there."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
