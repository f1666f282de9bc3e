"""What one module of a package offers, as a reader of its language found it, and the bounds of such a reader."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

_MARK = re.compile(r"[()\[\]{},]|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?")
# The characters of a definition that are looked at for its parameters.
FAR = 5_000
# Longer names are no names, and longer signatures say no more to the model.
MAX_NAME = 100
MAX_SIGNATURE = 160
# The names of a module that are kept, members included, and the processor time (s) in which they are found.
MAX_NAMES, MAX_SECONDS = 20_000, 0.5
# What Python takes for a text beside its characters, and for an entry of a table.
_BYTES_PER_TEXT, _BYTES_PER_ENTRY = 50, 110


def closed(code: str, start: int) -> int:
    """The end of the bracket that opens at an offset; the offset where none opens there, or none closes it soon."""
    depth = 0
    if not code.startswith(("(", "{"), start):
        return start
    for match in _MARK.finditer(code, start, start + FAR):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
            if not depth:
                return match.end()
    return start


def split(inner: str) -> Iterator[str]:
    """The parameters of a list, each on one line."""
    depth = last = 0
    for match in _MARK.finditer(inner):
        if match[0] == "," and not depth:
            yield " ".join(inner[last : match.start()].split())
            last = match.end()
        elif match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
    if rest := " ".join(inner[last:].split()):
        yield rest


class ReaderLimit:
    """Says when a reader has to stop: after so many names, or so much time of its thread.

    ``was_over``: it had to.
    """

    def __init__(self) -> None:
        self.was_over = False
        self._count, self._until = 0, time.thread_time() + MAX_SECONDS

    def is_over(self) -> bool:
        """Count a name; returns whether it is one too many."""
        self._count += 1
        is_late = self._count % 64 == 0 and time.thread_time() > self._until
        self.was_over = self.was_over or self._count > MAX_NAMES or is_late
        return self.was_over


class ModuleNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names of a module, each with its first signature, "" where it has none.

    ``members`` has those of its classes. ``bases`` are the classes that a class extends, as they are written.
    ``imported`` are names of other modules: where a local name comes from, a module and a name in it ("": the module
    itself). ``stars`` are modules all of whose names are offered, too. ``is_open``: it may have more names, which
    running it makes, or which were not read.
    """

    names: dict[str, str] = msgspec.field(default_factory=dict)
    members: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    stars: tuple[str, ...] = ()
    is_open: bool = False

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        tables = (self.names, *self.members.values())
        texts = sum(2 * _BYTES_PER_TEXT + len(name) + len(text) for table in tables for name, text in table.items())
        entries = sum(map(len, tables)) + len(self.members) + len(self.bases) + 2 * len(self.imported)
        return texts + (_BYTES_PER_ENTRY + _BYTES_PER_TEXT) * entries


@dataclass(frozen=True, slots=True)
class Named:
    """What is known of a name: where its module says that it is, and how it is used.

    ``path`` is that of its file in the environment. ``members`` are those of a class.
    """

    name: str
    path: str
    signature: str = ""
    members: dict[str, str] = field(default_factory=dict)
