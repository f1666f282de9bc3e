"""The workspaces of an engine, those used last."""

from collections import OrderedDict
from pathlib import Path
from threading import Lock

from lacuna_model.files.scanning import WorkspaceSettings
from lacuna_model.prior.indexing import FileTokenizer
from lacuna_model.workspace.project import Project

MAX_PROJECTS = 4


class Workspaces:
    """Projects by their root folder; the least recently used one is closed first. Safe to use from several threads."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self._tokenizer = tokenizer
        self._projects: OrderedDict[Path, Project] = OrderedDict()
        self._lock = Lock()

    def follow(self, root: str) -> Project:
        """The project at ``root``; a new one is read in the background and kept up to date from now on."""
        project, is_new = self._find(Path(root).absolute())
        if is_new:
            project.follow()
        return project

    def read(self, root: str, seconds: float, settings: WorkspaceSettings | None = None) -> Project:
        """The project at ``root``, read for at most so many seconds and not followed: for a command that ends.

        If ``settings`` differ from the project's, it is made again.
        """
        project, _ = self._find(Path(root).absolute(), settings)
        project.read(seconds)
        return project

    def close(self) -> None:
        """Close all projects."""
        with self._lock:
            for project in self._projects.values():
                project.close()
            self._projects.clear()

    def _find(self, root: Path, settings: WorkspaceSettings | None = None) -> tuple[Project, bool]:
        with self._lock:
            project = self._projects.get(root)
            is_new = project is None or settings not in (None, project.settings)
            if is_new:
                if project is not None:
                    project.close()
                project = self._projects[root] = Project(root, self._tokenizer, settings or WorkspaceSettings())
            assert project is not None
            self._projects.move_to_end(root)
            while len(self._projects) > MAX_PROJECTS:
                self._projects.popitem(last=False)[1].close()
            return project, is_new
