"""Reads the far part of a gap's prefix as the parser does, in whole subtrees where the tree has sound ones.

Near the gap the text is read terminal by terminal, since its tree is the result of error recovery.
"""

from collections.abc import Callable

from tree_sitter import Node

from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.parse_table import START, ParseTable, Stack, Terminal

NEAR = 8_000  # bytes before a gap that are not far
STEP = 4_000  # bytes; rounding makes the far parts of texts that differ near their ends mostly the same
MOST_KEPT = 8

# Turns a leaf of a text into a terminal, given whether it begins a line.
AsTerminal = Callable[[Node, bool], Terminal]


class FarPrefix:
    """The stacks after the far parts of texts that begin alike; results are kept."""

    def __init__(self, table: ParseTable, clock: Clock) -> None:
        self._table, self._clock = table, clock
        self._known: dict[bytes, list[Stack]] = {b"": [START]}

    def stacks(self, text: bytes, root: Node, terminal: AsTerminal) -> tuple[list[Stack], int]:
        """Return the stacks after all leaves of ``text`` that begin before an offset, and that offset.

        The offset is 0 where the far part cannot be read like this, or not in time; a later search then continues.
        """
        border = max(len(text) - NEAR, 0) // STEP * STEP
        far = text[:border]
        if far not in self._known:
            known = max(filter(far.startswith, self._known), key=len)
            if len(self._known) > MOST_KEPT:
                self._known = {b"": [START], known: self._known[known]}
            stacks, end = self._read(self._known[known], text, root, (len(known), border), terminal)
            self._known[text[:end]] = stacks
        found = self._known.get(far)
        return (found, border) if found else ([START], 0)

    def _read(
        self, stacks: list[Stack], text: bytes, root: Node, part: tuple[int, int], terminal: AsTerminal
    ) -> tuple[list[Stack], int]:
        """The stacks after the leaves that begin in a part of a text, and the end of what was read in time."""
        end, stop = part
        waiting = [root]
        while waiting and stacks:
            node = waiting.pop()
            if node.start_byte >= stop:
                break
            if node.end_byte <= part[0] or (node.is_extra and not node.is_error):
                continue
            if self._clock.over:
                return stacks, max(node.start_byte, part[0])
            known = node.start_byte < part[0]
            if not node.child_count:
                if not known and node.start_byte < node.end_byte:
                    stacks = self._table.read_any(stacks, terminal(node, b"\n" in text[end : node.start_byte]))
                    end = node.end_byte
            elif not known and node.end_byte <= stop and (taken := self._whole(stacks, node)):
                stacks, end = taken, node.end_byte
            else:
                waiting += reversed(node.children)
        return stacks, stop

    def _whole(self, stacks: list[Stack], node: Node) -> list[Stack]:
        return [] if node.has_error else self._table.take_whole(stacks, node)
