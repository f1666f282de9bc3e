"""Strict parsers of a data language: those that read such a file in the end."""

from collections.abc import Callable
from dataclasses import dataclass

Parser = Callable[[str], object]


@dataclass(frozen=True)
class StrictParsers:
    """The ``parsers`` of a language, the strictest first, each of which raises ValueError or yaml.YAMLError.

    ``neutral`` are texts that may fill a gap of a sound text. Texts up to ``soon`` bytes are parsed at every check,
    larger ones at the end.
    """

    parsers: tuple[Parser, ...]
    neutral: tuple[str, ...]
    soon: int
