"""The words of code: identifiers, and the parts of compound identifiers."""

import re
from functools import lru_cache

_IDENTIFIER = re.compile(r"[^\W\d]\w+")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")


def words(text: str) -> list[str]:
    """The words of a text in order: identifiers of two and more characters, and the parts of compound ones."""
    return [word for name in _IDENTIFIER.findall(text) for word in _split(name)]


def similarity(text: str, other: str) -> float:
    """The share of the lines of ``text`` that the other has too, in 0..1; lines without a word do not count."""
    lines = _lines(text)
    return len(lines & _lines(other)) / len(lines) if lines else 0.0


def plain(text: str) -> str:
    """The text with line feeds as line ends and without a byte order mark."""
    bare = text.removeprefix("\ufeff")
    return bare.replace("\r\n", "\n").replace("\r", "\n") if "\r" in bare else bare


@lru_cache(maxsize=200_000)
def _split(name: str) -> tuple[str, ...]:
    parts = [part.lower() for part in _PARTS.findall(name) if len(part) > 1]
    whole = name.lower()
    return (whole, *parts) if len(parts) > 1 else (whole,)


@lru_cache(maxsize=1_024)
def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.split("\n") if _IDENTIFIER.search(line))
