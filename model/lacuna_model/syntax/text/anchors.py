"""Anchors of YAML: an alias is the name of one that stands above it, which no grammar tells."""

import re
from collections.abc import Iterator

from lacuna_model.syntax.text.tags import Completions

NAME = rb"[^\s,\[\]{}]"
ANCHOR = re.compile(rb"(?<![^\s,\[{])&(" + NAME + rb"+)")
ALIAS = re.compile(rb"(?<![^\s,\[{])\*(" + NAME + rb"*)\Z")


class Anchors:
    """The anchors ``before`` a gap."""

    def __init__(self, before: bytes) -> None:
        self._before = before

    def completions(self, fill: bytes, others: Completions) -> Iterator[bytes]:
        """The completions, and first the names that an alias at the end of a fill may have, nearest first."""
        text = self._before + fill
        half = ALIAS.search(text)
        for name in reversed(dict.fromkeys(ANCHOR.findall(text))) if half is not None else ():
            if half is not None and name.startswith(half[1]):
                yield name[len(half[1]) :]
        yield from others(fill)

    def named(self, _fill: bytes, completion: bytes) -> bytes:
        """The completion as it is."""
        return completion
