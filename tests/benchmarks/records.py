"""Results on disk, one line of JSON each as they come, so that a run that was ended goes on where it was."""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

import msgspec

from lacuna_model.commands import output
from lacuna_model.core.errors import RequestError
from lacuna_model.hub import atomic, models

Line = TypeVar("Line", bound=msgspec.Struct)
Question = TypeVar("Question")


def subject(model: str) -> str:
    """The identity of a model for records: its name, and the checksum if its weights are one file."""
    path = models.weights(model)
    return models.absolute(model) if path.is_dir() else f"{model} {atomic.remembered(path)}"


class Records(Generic[Line]):
    """A file of results of one ``kind``. ``found`` are all results: those of earlier runs, and what is added.

    The first line of a file is its ``head``, if there is one; only a file with the same one is gone on with. With
    ``anew`` a file is overwritten. Without a ``path`` nothing is stored. Raises RequestError for a file that cannot be
    written, is damaged, or has another head.
    """

    def __init__(
        self, path: Path | None, kind: type[Line], head: msgspec.Struct | None = None, *, anew: bool = False
    ) -> None:
        self.found: list[Line] = []
        self._file = None
        if path is None:
            return
        first = msgspec.json.encode(head) + b"\n" if head is not None else b""
        try:
            data = path.read_bytes() if path.exists() and not anew else b""
            # Text after the last newline is an incomplete line of a killed run.
            whole = data[: data.rfind(b"\n") + 1] or first
            if not whole.startswith(first):
                raise RequestError(f"{path}: records of another evaluation; choose another file, or remove it")
            self.found = msgspec.json.Decoder(kind).decode_lines(whole[len(first) :])
            self._file = path.open("r+b" if data else "wb")
            self._file.write(whole)
            self._file.truncate()
            self._file.flush()
        except OSError as error:
            raise RequestError(f"cannot write records to {path}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise RequestError(f"{path}: damaged records: {error}") from error

    def add(self, line: Line) -> None:
        """Stores one result."""
        self.found.append(line)
        if self._file:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()

    def run(
        self,
        what: str,
        questions: Sequence[Question],
        ask: Callable[[Question], Line],
        key: Callable[[Question], Hashable],
        answered: Callable[[Line], Hashable],
    ) -> list[Line]:
        """Asks every question whose ``key`` no result has; returns all results. A bar shows how far it is."""
        known = {answered(one) for one in self.found}
        with output.counting(what, len(questions)) as advance:
            for question in questions:
                if key(question) not in known:
                    self.add(ask(question))
                advance()
        return self.found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()
