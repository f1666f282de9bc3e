"""Writes a plan to disk: all files or none, and only if they have not changed since the plan was made."""

from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor import journal
from lacuna_server.refactor.plan import Plan, sha256


def apply(plan: Plan) -> list[str]:
    """Writes every ready edit and returns the paths of the changed files.

    Raises RequestError, and writes nothing, where a file has changed since the plan was made or cannot be written.
    """
    contents = []
    for file in plan.ready.files:
        path = Path(file.path)
        try:
            before = path.read_bytes()
        except OSError as error:
            raise RequestError(f"cannot read {path}: {error.strerror}; nothing was written") from error
        if sha256(before) != file.sha256:
            raise RequestError(f"{path} has changed since the preview; nothing was written")
        contents.append((path, before, file.rewritten(before)))
    journal.replace_all(contents)
    return [str(path) for path, _, _ in contents]
