"""Anchors of YAML: an alias has to name an anchor above it, which no grammar checks."""

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
        """Yield the names that complete an alias at the end of a fill, nearest first, then the ``others``."""
        text = self._before + fill
        half = ALIAS.search(text)
        for name in reversed(dict.fromkeys(ANCHOR.findall(text))) if half is not None else ():
            if half is not None and name.startswith(half[1]):
                yield name[len(half[1]) :]
        yield from others(fill)

    def named(self, _fill: bytes, completion: bytes) -> bytes:
        """Return the completion unchanged."""
        return completion
