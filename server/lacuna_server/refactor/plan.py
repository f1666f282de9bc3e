"""What a refactor proposes, free of any editor: per file the text it was made from, and one edit for each place."""

import hashlib
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

EditStatus = Literal["ready", "failed"]


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bytes ``start``..``end`` of the original become ``new_text``.

    A ``failed`` edit has no new text, only the reason in ``message``. A ``support`` edit (an import, say) is applied
    if and only if another edit of its file is.
    """

    start: int
    end: int
    new_text: str
    label: str
    status: EditStatus = "ready"
    message: str = ""
    support: bool = False


class FileEdits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The edits of one file, in order and disjoint.

    ``sha256`` is that of the original's bytes and ``version`` that of the open document, if it is one: edits must not
    be applied to anything else.
    """

    path: str
    sha256: str
    version: int | None
    edits: tuple[Edit, ...]

    @property
    def ready(self) -> tuple[Edit, ...]:
        """The edits that can be applied; none where there would be only support."""
        ready = tuple(edit for edit in self.edits if edit.status == "ready")
        return () if all(edit.support for edit in ready) else ready

    def only(self, accepted: Collection[int]) -> "FileEdits":
        """These edits without those that are not accepted, by index; support stays."""
        kept = tuple(edit for index, edit in enumerate(self.edits) if edit.support or index in accepted)
        return msgspec.structs.replace(self, edits=kept)

    def rewritten(self, original: bytes) -> bytes:
        """The original with the ready edits applied; every byte outside them stays."""
        return splice(original, [(edit.start, edit.end, edit.new_text) for edit in self.ready])


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that one refactor proposes; ``left_out`` says in a line each what it does not touch, and why."""

    title: str
    files: tuple[FileEdits, ...]
    left_out: tuple[str, ...] = ()

    @property
    def ready(self) -> "Plan":
        """What can be applied."""
        files = tuple(msgspec.structs.replace(file, edits=file.ready) for file in self.files if file.ready)
        return msgspec.structs.replace(self, files=files)

    @property
    def num_ready(self) -> int:
        """How many places can be changed, support not counted."""
        return sum(not edit.support for file in self.files for edit in file.ready)

    @property
    def num_failed(self) -> int:
        """How many places stay as they were because nothing valid was found for them."""
        return sum(edit.status == "failed" for file in self.files for edit in file.edits)


def sha256(data: bytes) -> str:
    """The digest that a file's edits are bound to."""
    return hashlib.sha256(data).hexdigest()


def splice(original: bytes, edits: Sequence[tuple[int, int, str]]) -> bytes:
    """``original`` with the ordered, disjoint ranges replaced."""
    pieces, position = [], 0
    for start, end, text in edits:
        pieces += [original[position:start], text.encode()]
        position = end
    return b"".join([*pieces, original[position:]])
