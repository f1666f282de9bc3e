"""Stores results on disk, one line each as they come, so that an interrupted evaluation can resume."""

from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.hub import atomic, models

Line = TypeVar("Line", bound=msgspec.Struct)


def subject(model: str) -> str:
    """Returns the identity of a model for records: its name, and the checksum if its weights are one file."""
    if models.folder(model) is not None:
        return models.absolute(model)
    return f"{model} {atomic.remembered(models.weights(model))}"


class Records(Generic[Line]):
    """A file of JSON lines: the first one is the question, the others are results; only the same question resumes.

    ``found`` are the results of earlier runs. Without a ``path`` nothing is stored. Raises RequestError for a file that
    cannot be written, is damaged, or belongs to another evaluation.
    """

    def __init__(self, path: Path | None, settings: msgspec.Struct, decoder: msgspec.json.Decoder[Line]) -> None:
        self.found: list[Line] = []
        if path is None:
            self._file = None
            return
        head = msgspec.json.encode(settings) + b"\n"
        try:
            data = path.read_bytes() if path.exists() else b""
            # Text after the last newline is an incomplete line of a killed run.
            whole = data[: data.rfind(b"\n") + 1] or head
            if not whole.startswith(head):
                raise RequestError(f"{path}: records of another evaluation; choose another file, or remove it")
            self.found = decoder.decode_lines(whole[len(head) :])
            self._file = path.open("r+b" if data else "wb")
            self._file.write(whole)
            self._file.truncate()
        except OSError as error:
            raise RequestError(f"cannot write records to {path}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise RequestError(f"{path}: damaged records: {error}") from error

    def add(self, line: Line) -> None:
        """Stores one result."""
        if self._file:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()
