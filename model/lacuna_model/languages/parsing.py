"""Parsing with limits: some texts make a grammar run for minutes or forever, while it holds the interpreter's lock.

tree-sitter-tsx does so on ``<a {{b:>c:d(e f)``. tree-sitter calls its progress callback only where it reads the text
through a callable, so all parses do; that takes no longer than a parse of bytes. Between two reports nothing can end
it, and error recovery may do very much there: tree-sitter-java takes 18 s and 8 GB at the end of 25,000 times ``A<``.
That grows with the square of what is open, so of a text that is new each piece is read alone first.
"""

import ctypes
import hashlib
import math
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

import tree_sitter
from tree_sitter import Node, Point, Query, QueryCursor, Tree

from lacuna_model.core import work
from lacuna_model.core.errors import LacunaError
from lacuna_model.text.diff import num_common
from lacuna_model.text.lines import first_written

# The most reports of progress of a parse: so many, and one more per so many bytes. That is several times what real
# files need, broken ones too, and half a second of an endless parse.
LEAST_REPORTS = 4000
BYTES_PER_REPORT = 10
# The processor time of a parse, in nanoseconds: so long, and one more for so many bytes. tree-sitter-html copies the
# stack of open elements at each tag, so that between two reports the time grows with the depth.
LEAST_NS, NS_PER_BYTE = 500_000_000, 1_000
# The pieces of a text that is new, in bytes, and what each may take between two reports. Those of real files take up to
# 3 ms, and what takes seconds in 10 KB takes 100 ms in a piece.
PIECE, PART, SLOW_NS = 4_096, 1_024, 25_000_000
# The texts of a grammar that were read so last: those that differ from one of them in no more than a part are not.
TAME = 4
# How many nodes a node may be in that begin at different places, and how many at all: a chain of operators, calls or
# members is in one place. Real files have up to 70, and chains of a few hundred. A query takes the square of the depth.
# A tree is looked at where every so manieth of its nodes is.
DEEPEST, LONGEST, SEEN = 1_000, 2_000, 250
# The matches that a query may have begun and not ended: it compares all of them at each capture. Real files have up to
# sixty. A progress callback
# would end it, but py-tree-sitter 0.26 calls that one after its memory was freed.
MATCHES = 1_000
# The work of a parse, in nominal nanoseconds: of each, of its reports and of the bytes that it reads.
PARSE_NS, REPORT_NS, BYTE_NS = 90_000, 29_000, 50
CHUNK = 4_096
# Texts that reached a limit are remembered, so that no request waits for one of them twice.
REMEMBERED = 256
TOO_LONG = "that takes too long with this text"
ENDLESS = "the grammar does not come to an end with the text that begins with %s"
DEEP = "the text that begins with %s is nested too deeply"


class UnparsableError(LacunaError):
    """A text whose parse does not end, which is nested too deeply, or which the grammar's scanner cannot hold."""


class _Progress:
    """Counts the reports of a parse of so many bytes, and says when it has to stop; ``slowest`` is the longest wait."""

    def __init__(self, most: float, size: int) -> None:
        self.reports, self.slowest = 0, 0
        self._most, self._last = most, time.thread_time_ns()
        self._until = self._last + LEAST_NS + NS_PER_BYTE * size

    def report(self, _offset: int = 0, _has_error: bool = False) -> bool:
        """Count a report; returns whether the parse has to stop."""
        self.reports += 1
        return self.reports > self._most or self.measure() > self._until or work.is_over()

    def measure(self) -> int:
        """Note how long the last step took; returns the thread's time."""
        now = time.thread_time_ns()
        self.slowest, self._last = max(self.slowest, now - self._last), now
        return now


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
        """Return the tree, or None after more than ``most`` reports of progress, and the number of reports.

        Raises OverBudgetError if the request's time is used up.
        """
        limit = LEAST_REPORTS + len(text) // BYTES_PER_REPORT
        if _HOPELESS and (said := _HOPELESS.get(self._key(text))) is not None:
            work.spend(_cost(len(text), limit))
            raise UnparsableError(said)
        if self._breaks is not None and self._breaks(text):
            raise UnparsableError(ENDLESS % _beginning(text))
        if not self._is_tame(text):
            work.check()
            raise self._refused(text, ENDLESS)
        progress = _Progress(min(most, limit), len(text))
        tree, size = self._parsed(text, old, progress)
        is_endless = tree is None and progress.reports <= most
        if tree is not None or is_endless:
            work.check()
        # an endless parse costs as much as where the same text is refused again
        work.spend(_cost(min(size, len(text)), limit if is_endless else min(progress.reports, limit)))
        if is_endless:
            raise self._refused(text, ENDLESS)
        if tree is not None and old is None and _is_deep(tree):
            raise self._refused(text, DEEP)
        return tree, progress.reports

    def _parsed(self, text: bytes, old: Tree | None, progress: _Progress) -> tuple[Tree | None, int]:
        """The tree, None if the ``progress`` stopped it, and how many bytes were read."""
        size, chunks, view = 0, list[bytes](), memoryview(text)

        def read(offset: int, _point: Point) -> bytes:
            nonlocal size
            size += CHUNK
            chunks.append(bytes(view[offset : offset + CHUNK]))  # a slice of all of a text would be the text
            return chunks[-1]

        progress.measure()
        progress.slowest = 0
        try:
            if old is None:
                tree = self._parser.parse(read, progress_callback=progress.report)
            else:
                tree = self._parser.parse(read, old, progress_callback=progress.report)
        except ValueError:  # how py-tree-sitter reports a parse that its callback stopped
            self._parser.reset()
            tree = None
        finally:
            _free(chunks)
        progress.measure()
        return tree, size

    def _is_tame(self, text: bytes) -> bool:
        """Whether no piece of a text takes the grammar long to end; what is known of a similar text suffices."""
        known = _TAME.setdefault(self._grammar, deque(maxlen=TAME))
        if len(text) <= PART or any(_differ_little(one, text) for one in known):
            return True
        progress = _Progress(math.inf, 2 * len(text))
        for begin in range(0, len(text), PIECE):
            for size in (PART, PIECE):  # some take 16 times as long as a part
                piece = text[begin : begin + size]
                if self._is_slow_in(piece, progress) and self._is_slow_in(piece, progress):  # twice is no accident
                    return False
        known.append(text)
        return True

    def _is_slow_in(self, piece: bytes, progress: _Progress) -> bool:
        """Whether the grammar takes long for a step in a piece, or the time for all pieces is over."""
        tree, _ = self._parsed(piece, None, progress)
        work.check()
        return tree is None or progress.slowest > SLOW_NS

    def _refused(self, text: bytes, why: str) -> UnparsableError:
        """Remember that a text has reached a limit; returns the error to raise."""
        message = _HOPELESS[self._key(text)] = why % _beginning(text)
        while len(_HOPELESS) > REMEMBERED:
            del _HOPELESS[next(iter(_HOPELESS))]
        return UnparsableError(message)

    def _key(self, text: bytes) -> "Key":
        return self._grammar, hashlib.sha256(text).digest()


Key = tuple[tree_sitter.Language, bytes]
Answer = TypeVar("Answer")
_HOPELESS: dict[Key, str] = {}
_TAME: dict[tree_sitter.Language, deque[bytes]] = {}


def captured(query: Query, root: Node, begin: int, stop: int) -> dict[str, list[Node]]:
    """Return what a query captures in a byte range of a tree; raises UnparsableError if it keeps too much in mind."""
    cursor = QueryCursor(query, match_limit=MATCHES)
    cursor.set_byte_range(begin, stop)
    return _remembered(cursor.captures(root), cursor)


def matched(query: Query, root: Node) -> list[tuple[int, dict[str, list[Node]]]]:
    """Return the matches of a query in a tree: the number of each one's pattern, and its captures; raises likewise."""
    cursor = QueryCursor(query, match_limit=MATCHES)
    return _remembered(cursor.matches(root), cursor)


def _remembered(answer: Answer, cursor: QueryCursor) -> Answer:
    work.check()
    if cursor.did_exceed_match_limit:
        raise UnparsableError(TOO_LONG)
    return answer


def _cost(size: int, reports: int) -> int:
    return PARSE_NS + reports * REPORT_NS + size * BYTE_NS


def _differ_little(one: bytes, other: bytes) -> bool:
    """Whether two texts are the same but for a part."""
    if abs(len(one) - len(other)) > PART:
        return False
    begin = num_common(one, other)
    rest = max(max(len(one), len(other)) - begin - PART, 0)  # bytes that have to be the same at the end
    return rest == 0 or one[-rest:] == other[-rest:]


def advance(point: Point, text: bytes) -> Point:
    """Return the point after a ``text`` that begins at ``point``."""
    rows = text.count(b"\n")
    column = len(text) - text.rfind(b"\n") - 1 if rows else point.column + len(text)
    return Point(point.row + rows, column)


def edited(tree: Tree, before: bytes, old: bytes, new: bytes) -> Tree:
    """Return a copy of a tree, edited as if ``new`` stood in place of ``old`` behind the text ``before``."""
    found, start, point = tree.copy(), len(before), advance(Point(0, 0), before)
    found.edit(start, start + len(old), start + len(new), point, advance(point, old), advance(point, new))
    return found


def _is_deep(tree: Tree) -> bool:
    """Whether one of the nodes that are looked at is in too many others."""
    cursor = tree.walk()
    for number in range(DEEPEST, tree.root_node.descendant_count, SEEN):
        cursor.goto_descendant(number)
        if cursor.depth >= LONGEST:
            return True
        if cursor.depth >= DEEPEST:
            begins = set[int]()
            while cursor.node is not None:
                begins.add(cursor.node.start_byte)
                if not cursor.goto_parent():
                    break
            if len(begins) >= DEEPEST:
                return True
    return False


def _beginning(text: bytes) -> str:
    return repr(first_written(text.decode(errors="replace")).strip()[:40])
