"""The exact test for the gaps of one window: which beginnings of fills can be completed, and how."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from lacuna_model.languages.language import Language
from lacuna_model.syntax.completion.grammar_completions import GrammarCompletions
from lacuna_model.syntax.completion.readings import PrefixReader
from lacuna_model.syntax.exact.beginnings import Beginnings
from lacuna_model.syntax.exact.gap import ExactGap, Suffix
from lacuna_model.syntax.exact.words import REACH, Words
from lacuna_model.syntax.lr.parse_table import Terminal
from lacuna_model.syntax.lr.piece_cache import pieces_of
from lacuna_model.syntax.text.balance import Balance, Sides

MOST_KEPT = 16

Fills = Sequence[bytes]


class ExactWindow:
    """Completions by the grammar for the gaps between some ``pieces`` of text; results are kept."""

    def __init__(self, language: Language, reader: PrefixReader, pieces: Fills, balance: Balance) -> None:
        self._language, self._reader, self._pieces, self._balance = language, reader, pieces, balance
        self._suffixes: dict[tuple[object, ...], Suffix] = {}
        self._beginnings: dict[int, tuple[bytes, Beginnings]] = {}  # by gap, each with the text before it
        self._linked: dict[tuple[int, bytes], ExactGap] = {}

    def linked(self, fills: Fills, beginning: bytes) -> Iterator[bytes]:
        """Yield completions of the gap after those with these fills, so that the text up to the next gap can be read.

        The next gap may hold any text.
        """
        gap, front = len(fills), self._front(fills)
        if (gap, front) not in self._linked:
            if len(self._linked) > MOST_KEPT:
                self._linked.clear()
            sides = self._balance.filled(0, fills).sides(0)
            suffix, read = self._suffix_of(sides, front), self._read(gap, front, sides)
            self._linked[gap, front] = ExactGap(self._language, self._reader, read, suffix)
        return self._linked[gap, front].completions(front + beginning)

    def _front(self, fills: Fills) -> bytes:
        """The text before the gap that follows some fills."""
        return b"".join(part for pair in zip(self._pieces, [*fills, b""], strict=False) for part in pair)

    @cached_property
    def _words(self) -> Words:
        return Words(self._language, pieces_of(self._language, self._reader.table)[0])

    def _read(self, gap: int, front: bytes, sides: Sides) -> Beginnings:
        """The stacks after the text before a gap and beginnings of its fill."""
        known = self._beginnings.get(gap)
        if known is None or known[0] != front:
            before = self._beginnings.get(gap - 1)
            earlier = before[1] if before is not None and front.startswith(before[0]) else None
            inside = sides.left.inside.strip()
            known = front, Beginnings(self._language, self._reader, self._words, front, earlier, inside)
            self._beginnings[gap] = known
        return known[1]

    def _opener(self, sides: Sides) -> bytes:
        """The opener of the string or comment that the text after a gap begins in; empty for none."""
        inside = sides.right.inside
        return self._language.lexicon.opener_of(inside) if inside else b""

    def _suffix_of(self, sides: Sides, front: bytes) -> Suffix:
        """The suffix on the right of some sides, which reaches to the next gap or to the end."""
        opener = self._opener(sides)
        found = GrammarCompletions(sides, self._language, self._reader, front).suffix(opener, REACH)
        return self._suffix(found, opener)

    def _suffix(self, terminals: Sequence[Terminal], opener: bytes) -> Suffix:
        key = (*terminals, opener)
        if key not in self._suffixes:
            if len(self._suffixes) > MOST_KEPT:
                self._suffixes.clear()
            self._suffixes[key] = Suffix(self._language, self._reader.table, terminals, opener)
        return self._suffixes[key]
