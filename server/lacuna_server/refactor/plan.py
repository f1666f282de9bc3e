"""The plan of a refactor, independent of any editor: for each file its digest and one edit for each place.

And how the edits are written.
"""

from pathlib import Path
from typing import Literal

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.text.lines import splice
from lacuna_server.files import check_writable
from lacuna_server.refactor import journal
from lacuna_server.refactor.journal import sha256

EditStatus = Literal["ready", "failed", "unsure"]


class PlannedEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replaces the bytes ``start``..``end`` of the original by ``new_text``.

    A ``failed`` edit has no new text, only the reason in ``message``. An ``unsure`` edit is not applied, because its
    ``confidence``, the probability (0..1) that all its fills are right, is too low (None if it is not known), or its
    new text has a warning. A ``support`` edit, such as an import, is applied only together with another edit of its
    file.
    """

    start: int
    end: int
    new_text: str
    label: str
    status: EditStatus = "ready"
    message: str = ""
    support: bool = False
    confidence: float | None = None


class FileEdits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The edits of one file, in order and disjoint.

    ``sha256`` is the digest of the original's bytes, and ``version`` the version of the open document, if there is one.
    The edits must not be applied to any other text.
    """

    path: str
    sha256: str
    version: int | None
    edits: tuple[PlannedEdit, ...]

    @property
    def ready(self) -> tuple[PlannedEdit, ...]:
        """The edits that can be applied; none where all of them are support."""
        ready = tuple(edit for edit in self.edits if edit.status == "ready")
        return () if all(edit.support for edit in ready) else ready

    def check(self, original: bytes, since: str = "it was searched") -> None:
        """Raises RequestError unless this is the text that the edits are for."""
        if sha256(original) != self.sha256:
            raise RequestError(f"{self.path} has changed since {since}; nothing was written")

    def rewritten(self, original: bytes) -> bytes:
        """Returns the original with the ready edits applied; all other bytes stay the same."""
        return splice(original, [(edit.start, edit.end, edit.new_text.encode()) for edit in self.ready])


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All edits that one refactor proposes; ``left_out`` names each place or file that it leaves out, and why."""

    title: str
    files: tuple[FileEdits, ...]
    left_out: tuple[str, ...] = ()

    @property
    def ready(self) -> "Plan":
        """The plan, reduced to the edits that can be applied."""
        files = tuple(msgspec.structs.replace(file, edits=file.ready) for file in self.files if file.ready)
        return msgspec.structs.replace(self, files=files)

    @property
    def num_ready(self) -> int:
        """The number of places that can be changed, without support."""
        return sum(not edit.support for file in self.files for edit in file.ready)

    @property
    def num_failed(self) -> int:
        """The number of places that stay as they were because there was no valid fill."""
        return sum(edit.status == "failed" for file in self.files for edit in file.edits)


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
        check_writable([path])
        file.check(before, "the preview")
        contents.append((path, before, file.rewritten(before)))
    journal.replace_all(contents)
    return [str(path) for path, _, _ in contents]
