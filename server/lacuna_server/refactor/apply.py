"""Writes a plan to disk: all files or none, and only if they have not changed since the plan was made."""

from collections.abc import Sequence
from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_server.files import unwritable
from lacuna_server.refactor import journal
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import Plan, sha256
from lacuna_server.refactor.rewriting.rewrite import Rewrite


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
        if reason := unwritable(path):
            raise RequestError(f"{path} {reason}; nothing was written")
        if sha256(before) != file.sha256:
            raise RequestError(f"{path} has changed since the preview; nothing was written")
        contents.append((path, before, file.rewritten(before)))
    journal.replace_all(contents)
    return [str(path) for path, _, _ in contents]


def writable(
    found: Sequence[tuple[Source, list[Rewrite]]],
) -> tuple[list[tuple[Source, list[Rewrite]]], list[str]]:
    """Returns the places of the files that may be written, and a line about each of the other files.

    A document that is open is its editor's to write.
    """
    kept, left_out = [], []
    for source, rewrites in found:
        if source.version is None and (reason := unwritable(Path(source.path))):
            left_out.append(f"{source.path} {reason}; not changed")
        else:
            kept.append((source, rewrites))
    return kept, left_out
