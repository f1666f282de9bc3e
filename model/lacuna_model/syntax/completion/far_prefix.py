"""What is far in front of a gap, as a parser reads it: in whole subtrees, where the tree of an unfinished text has any.

Near the gap a text is read terminal by terminal, for there its tree is the work of error recovery.
"""

from collections.abc import Callable

from tree_sitter import Node

from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.lr.parse_table import START, ParseTable, Stack, Terminal

NEAR = 8_000  # bytes in front of a gap that are not far
STEP = 4_000  # the far parts of texts that differ near their ends are mostly the same
MOST_KEPT = 8

# A leaf of a text as a terminal, given whether it begins a line.
AsTerminal = Callable[[Node, bool], Terminal]


class FarPrefix:
    """The stacks behind the far parts of texts that begin alike; what was found is kept."""

    def __init__(self, table: ParseTable, clock: Clock) -> None:
        self._table, self._clock = table, clock
        self._known: dict[bytes, list[Stack]] = {b"": [START]}

    def stacks(self, text: bytes, root: Node, terminal: AsTerminal) -> tuple[list[Stack], int]:
        """The stacks behind all leaves of a text that begin in front of an offset, and that.

        It is 0 where the far part cannot be read so, and where time is up before: a later search goes on from there.
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
        """The stacks behind the leaves that begin in a part of a text, and its end or how far time allowed."""
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
