"""What one module of a package offers, as a reader of its language found it, and what such readers share."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lacuna_model.snippets.imports import imports

_MARK = re.compile(r"[()\[\]{},]|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?")
# The characters of a definition that are looked at for its parameters.
FAR = 5_000
# Longer names are no names, and longer signatures say no more to the model.
MAX_NAME = 100
MAX_SIGNATURE = 160
# The members of a type that its signature has.
_MAX_FIELDS = 8
# The processor time (s) in which the names of a module are found: a megabyte of stubs takes 0.1 s.
MAX_SECONDS = 0.5


def closed(code: str, start: int) -> int:
    """The end of the bracket that opens at an offset; the offset where none opens there, or none closes it soon."""
    depth = 0
    if not code.startswith(("(", "{"), start):
        return start
    for match in _MARK.finditer(code, start, start + FAR):
        depth += (match[0] in "([{") - (match[0] in ")]}")
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
        depth += (match[0] in "([{") - (match[0] in ")]}")
    if rest := " ".join(inner[last:].split()):
        yield rest


def cut(*signatures: str) -> str:
    """The first of some signatures that is short, or what is kept of the last one, which ends with a parenthesis."""
    short = (one for one in signatures if len(one) <= MAX_SIGNATURE)
    return next(short, f"{signatures[-1][: MAX_SIGNATURE - 4]}...)")


def first_of(members: Iterable[str], room: int) -> list[str]:
    """The first members of a type that fit into its signature, with two characters between them."""
    found = list[str]()
    for member in members:
        room -= len(member) + 2
        if room < 0 or len(found) == _MAX_FIELDS:
            break
        found.append(member)
    return found


class TooLongError(Exception):
    """A reader did not end in its time."""


def in_time(matches: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
    """What a reader goes through; raises TooLongError where it takes too long, as a text made for that may let it."""
    until = time.thread_time() + MAX_SECONDS
    for number, match in enumerate(matches):
        if number % 64 == 0 and time.thread_time() > until:
            raise TooLongError
        yield match


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """The names of a module, each with its first signature, "" where it has none.

    ``members`` has those of its classes. ``imported`` are names of other modules: where a local name comes from, a
    module and a name in it ("": the module itself). ``stars`` are modules all of whose names are offered, too.
    ``is_open``: it may have more names, which running it makes.
    """

    names: Mapping[str, str]
    members: Mapping[str, dict[str, str]]
    imported: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    is_open: bool = False

    @classmethod
    def of(
        cls,
        code: str,
        language: str,
        names: dict[str, str],
        members: dict[str, dict[str, str]],
        *,
        is_open: bool,
    ) -> "ModuleNames":
        """The names that a module declares, with those that its ``code`` imports."""
        taken = imports(code, language)
        imported = {
            name: (one.module, one.name) for name, one in taken.items() if one.name != "*" and name not in names
        }
        stars = tuple(one.module for one in taken.values() if one.name == "*")
        return cls(names, members, imported, stars, is_open)


@dataclass(frozen=True, slots=True)
class Named:
    """What is known of a name: where its module says that it is, and how it is used.

    ``path`` is that of its file in the environment. ``members`` are those of a class.
    """

    name: str
    path: str
    signature: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
