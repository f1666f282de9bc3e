"""Reads the beginning of a fill: the LR stacks after a text that may end in the middle of a terminal."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from tree_sitter import Node

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.readings import PrefixReader
from lacuna_model.syntax.exact.completable import Start
from lacuna_model.syntax.exact.words import Words
from lacuna_model.syntax.lr.insertions import COST_WORD
from lacuna_model.syntax.lr.parse_table import Stack, Terminal, leaves
from lacuna_model.syntax.lr.reparse import Reparser

# The word or the marks that a text ends with.
LAST_TOKEN = re.compile(rb"(#?\w+)\Z|[^\w\s]{1,2}\Z")
RESTS = (b"_", b">", b"'", b"x'", b"]", b"0")  # possible rests of an unfinished terminal
MOST_HALF = 80
COST_ENDED_LINE = 0.1  # for taking the line end that a text stops behind as a terminal
MOST_KEPT = 64


class Beginnings:
    """The stacks after texts that all begin with ``front``; what is read of them is kept.

    ``earlier`` has read the beginning of ``front``: it is that of the gap before, and ``front`` has a fill there.
    ``begin`` is where the text begins that is read anew each time. ``inside`` closes the string or comment that
    ``front`` stops in.
    """

    def __init__(
        self,
        language: Language,
        reader: PrefixReader,
        words: Words,
        front: bytes,
        earlier: "Beginnings | None" = None,
        inside: bytes = b"",
    ) -> None:
        self._table, self._insertions, self._as_terminal = reader.table, words.insertions, words.terminal
        if earlier is None:
            root = language.parser().parse(front + inside).root_node
            stacks, border = reader.front.stacks(front, root, partial(words.terminal, front))
        else:
            root, stacks, border = earlier._reparser.parse(front + inside).root_node, earlier._before, earlier.begin
        # A token that touches the gap from the left may begin a longer word: it is read with the fill.
        self.begin: int = _token_start(root, len(front))
        for terminal in self._terminals(front, root, border):
            stacks = reader.table.read_any(stacks, terminal)
        self._before: list[Stack] = stacks
        self._end = len(front[: self.begin].rstrip())
        self._reparser: Reparser = Reparser(language, self.begin)
        self._known: dict[bytes, list[Start]] = {}

    def starts(self, text: bytes) -> list[Start]:
        """Return the stacks after a text; the first text of each is the rest of the last word, which may be empty."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) > MOST_KEPT:
                self._known.clear()
            found = self._known[text] = list(self._read(text))
        return found

    def reads(self, text: bytes) -> bool:
        """Whether the grammar can read a text as far as it goes."""
        return bool(self.starts(text))

    def _terminals(self, text: bytes, root: Node, end: int) -> Iterator[Terminal]:
        """The terminals of a text from an offset up to where the gap's own text begins."""
        for leaf in leaves(root, end):
            if leaf.start_byte >= self.begin:
                return
            yield self._as_terminal(text, leaf, b"\n" in text[end : leaf.start_byte])
            end = leaf.end_byte

    def _read(self, text: bytes) -> Iterator[Start]:
        tree = self._reparser.parse(text)
        stacks, end = self._before, self._end
        read = [(end, stacks)]  # the ends of what was read, and the stacks there
        for leaf in leaves(tree.root_node, self.begin):
            stacks = self._table.read_any(stacks, self._as_terminal(text, leaf, b"\n" in text[end : leaf.start_byte]))
            end = leaf.end_byte
            if not stacks:
                break
            read.append((end, stacks))
        yield from (Start(0.0, stack, (b"",)) for stack in stacks)
        if b"\n" in text[end:]:
            yield from (Start(COST_ENDED_LINE, stack, (b"",)) for stack in self._behind_line_end(stacks))
        yield from self._longer(text, read)
        if not stacks:
            yield from self._finished(text, *read[-1])

    def _behind_line_end(self, stacks: Sequence[Stack]) -> Iterator[Stack]:
        """The stacks after the line end that a text stops behind, where it is a terminal."""
        yield from self._table.past_hidden(stacks)
        for stack in stacks:
            for terminal in self._insertions.line_ends(stack[-1]):
                yield from self._table.shift(stack, terminal)

    def _longer(self, text: bytes, read: Sequence[tuple[int, list[Stack]]]) -> Iterator[Start]:
        """The stacks after a keyword or mark whose beginning ends the text, and the rest of that keyword or mark."""
        match = LAST_TOKEN.search(text, self.begin)
        for begin in range(match.start(), match.start() + 1 if match[1] else len(text)) if match else ():
            before = next((stacks for end, stacks in reversed(read) if end <= begin), [])
            for terminal, whole in self._insertions.longer(text[begin:]):
                for stack in self._table.read(before, terminal):
                    yield Start(COST_WORD, stack, (whole[len(text) - begin :],))

    def _finished(self, text: bytes, end: int, stacks: list[Stack]) -> Iterator[Start]:
        """The stacks after a text that cannot be read to its end, if its rest begins a terminal."""
        half = text[end:].lstrip()
        for rest, stack in product(RESTS, [*stacks, *self._table.past_hidden(stacks)]) if len(half) < MOST_HALF else ():
            terminal = self._table.token(stack[-1], half + rest)
            if terminal is not None:
                yield from (Start(COST_WORD, after, (rest,)) for after in self._table.shift(stack, terminal))


def _token_start(root: Node, offset: int) -> int:
    """Where the token begins that touches an offset from the left; the offset itself where there is none."""
    leaf = root.descendant_for_byte_range(max(offset - 1, 0), offset)
    touches = leaf is not None and not leaf.child_count and leaf.end_byte >= offset
    return leaf.start_byte if leaf is not None and touches else offset
