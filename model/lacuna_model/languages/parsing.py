"""Parsing with a limit: some texts make a grammar run for minutes or forever, while it holds the interpreter's lock.

tree-sitter-tsx does so on ``<a {{b:>c:d(e f)``. tree-sitter calls its progress callback only where it reads the text
through a callable, so all parses do; that takes no longer than a parse of bytes.
"""

import ctypes
import hashlib
import math
import sys
import time
from collections.abc import Callable

import tree_sitter
from tree_sitter import Point, Tree

from lacuna_model.core import work
from lacuna_model.core.errors import LacunaError

# The most reports of progress of a parse: so many, and one more per so many bytes. That is several times what real
# files need, broken ones too, and half a second of an endless parse.
LEAST_REPORTS = 4000
BYTES_PER_REPORT = 50
# The processor time of a parse, in nanoseconds: so long, and one more for so many bytes. tree-sitter-html copies the
# stack of open elements at each tag, so that between two reports the time grows with the depth.
LEAST_NS, NS_PER_BYTE = 1_000_000_000, 1_000
# The work of a parse, in nominal nanoseconds: of each, of its reports and of the bytes that it reads.
PARSE_NS, REPORT_NS, BYTE_NS = 90_000, 29_000, 50
CHUNK = 4_096
# Texts that reached the limit are remembered, so that no request waits for one of them twice.
REMEMBERED = 256


class UnparsableError(LacunaError):
    """A text whose parse does not end, or which the grammar's scanner cannot hold."""


def _free(chunks: list[bytes]) -> None:
    """Drop the references that py-tree-sitter 0.26 keeps to what it has read, or every parse would keep its text."""
    while chunks:
        chunk = chunks.pop()
        if len(chunk) > 1 and sys.getrefcount(chunk) > 2:  # shorter ones are shared by the whole process
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(chunk))


class Parser:
    """Parses texts of one grammar; raises UnparsableError for a text that ``breaks`` it, or if a parse does not end."""

    def __init__(self, grammar: tree_sitter.Language, breaks: Callable[[bytes], bool] | None = None) -> None:
        self._grammar, self._breaks = grammar, breaks
        self._parser = tree_sitter.Parser(grammar)

    def parse(self, text: bytes, old: Tree | None = None) -> Tree:
        """Return the tree of ``text``; ``old`` is the tree of a similar text, edited to match this one."""
        tree, _ = self.counted(text, old, math.inf)
        assert tree is not None
        return tree

    def counted(self, text: bytes, old: Tree | None, most: float) -> tuple[Tree | None, int]:
        """Return the tree, or None after more than ``most`` reports of progress, and the number of reports."""
        limit = LEAST_REPORTS + len(text) // BYTES_PER_REPORT
        if _HOPELESS and self._key(text) in _HOPELESS:
            work.spend(_cost(len(text), limit))
            raise UnparsableError(_message(text))
        if self._breaks is not None and self._breaks(text):
            raise UnparsableError(_message(text))
        bound, reports, size = min(most, limit), 0, 0
        until = time.thread_time_ns() + LEAST_NS + NS_PER_BYTE * len(text)

        chunks: list[bytes] = []
        view = memoryview(text)

        def read(offset: int, _point: Point) -> bytes:
            nonlocal size
            size += CHUNK
            chunks.append(bytes(view[offset : offset + CHUNK]))  # a slice of all of a text would be the text
            return chunks[-1]

        def stop(_offset: int, _has_error: bool) -> bool:
            nonlocal reports
            reports += 1
            return reports > bound or time.thread_time_ns() > until

        try:
            if old is None:
                return self._parser.parse(read, progress_callback=stop), reports
            return self._parser.parse(read, old, progress_callback=stop), reports
        except ValueError as error:  # how py-tree-sitter reports a parse that its callback stopped
            self._parser.reset()
            if reports > most:
                return None, reports
            reports = limit  # the work that is counted when the same text is refused again
            _remember(self._key(text))
            raise UnparsableError(_message(text)) from error
        finally:
            _free(chunks)
            work.spend(_cost(min(size, len(text)), min(reports, limit)))

    def _key(self, text: bytes) -> "Key":
        return self._grammar, hashlib.sha256(text).digest()


Key = tuple[tree_sitter.Language, bytes]
_HOPELESS: dict[Key, None] = {}


def _cost(size: int, reports: int) -> int:
    return PARSE_NS + reports * REPORT_NS + size * BYTE_NS


def _remember(key: Key) -> None:
    _HOPELESS[key] = None
    while len(_HOPELESS) > REMEMBERED:
        del _HOPELESS[next(iter(_HOPELESS))]


def _message(text: bytes) -> str:
    first = next((line for line in text.decode(errors="replace").splitlines() if line.strip()), "").strip()
    return f"the grammar does not come to an end with the text that begins with {first[:40]!r}"
