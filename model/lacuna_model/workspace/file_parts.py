"""Parts of a file, and the names in each: most parts stay as they are from key to key, and are read once."""

import re
from collections import deque
from collections.abc import Iterator
from functools import cached_property, lru_cache

from lacuna_model.snippets.definitions import without_texts
from lacuna_model.snippets.imports import Import, imports

# Characters that are read at once, and so many of these parts are kept.
PART, _KEPT = 1 << 13, 64
# Characters before a gap in which a string or a comment may be open.
_MAX_TEXT = 1 << 18
WORD = re.compile(r"(\.\s*)?([^\W\d]\w*)")
# Comments and strings, and what is open at the end of a text.
_PYTHON_TEXT = re.compile(
    r"(\"{3}|'{3})(?:\\.|[^\\])*?(?:\1|(?P<whole>\Z))|\"(?:\\.|[^\"\\\n])*(?:\"|(?P<double>\Z))?"
    r"|'(?:\\.|[^'\\\n])*(?:'|(?P<single>\Z))?|#[^\n]*(?P<comment>\Z)?",
    re.DOTALL,
)
_SCRIPT_TEXT = re.compile(
    r"/\*.*?(?:\*/|(?P<whole>\Z))|\"(?:\\.|[^\"\\\n])*(?:\"|(?P<double>\Z))?"
    r"|'(?:\\.|[^'\\\n])*(?:'|(?P<single>\Z))?|`(?:\\.|[^`\\])*(?:`|(?P<template>\Z))?|//[^\n]*(?P<comment>\Z)?",
    re.DOTALL,
)


class FilePart:
    """A part of a file that begins in code, and what it tells on its own."""

    def __init__(self, text: str, language: str) -> None:
        self._text, self._language = text, language

    def read(self) -> None:
        """Find what it tells, which is kept."""
        _ = self.open, self.names, self.members, self.imports

    @cached_property
    def open(self) -> str:
        """The string or comment that does not end in it; "" where there is none."""
        pattern = _PYTHON_TEXT if self._language == "python" else _SCRIPT_TEXT
        for match in deque(pattern.finditer(self._text), maxlen=1):
            if any(open_at is not None for open_at in match.groupdict().values()):
                return match[0]
        return ""

    @cached_property
    def names(self) -> frozenset[str]:
        """The plain names."""
        return frozenset(name for dot, name in self._words if not dot)

    @cached_property
    def members(self) -> frozenset[str]:
        """The names behind a dot."""
        return frozenset(name for dot, name in self._words if dot)

    @cached_property
    def _words(self) -> frozenset[tuple[str, str]]:
        return frozenset(WORD.findall(without_texts(self._text, self._language)))

    @cached_property
    def imports(self) -> dict[str, Import]:
        """The imports that are whole in it."""
        return imports(self._text, self._language)


part = lru_cache(_KEPT)(FilePart)


def parts_before(text: str, language: str) -> Iterator[FilePart]:
    """The last parts of a text, cut at blank lines; each has the string or comment that is open in the one before."""
    at, open_text = max(0, len(text) - _MAX_TEXT) // PART * PART, ""
    while at < len(text):
        end = text.find("\n\n", at + PART) + 1 or len(text)
        yield (found := part(open_text + text[at:end], language))
        at, open_text = end, found.open
