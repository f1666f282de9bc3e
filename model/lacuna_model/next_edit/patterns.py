"""The patterns of a change: runs of old tokens, and the new tokens that they would become elsewhere.

A change exchanges some tokens and leaves others between them alone; a pattern demands all of them. The whole change is
one, and so are the exchanges that stand together, and each exchange of those.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.tokens import LINE_ENDS, is_word, net
from lacuna_model.text.diff import Hunk

WEAK_BITS = 7.0  # tokens that say less need a neighbour on each side
NEAR_TOKENS = 3  # exchanges with at most so many tokens between them are one


@dataclass(frozen=True)
class Pattern:
    """Tokens to find, and what becomes of them.

    ``new`` has the index of each old token that stays, and the text of each that is written. ``blanks`` are the blanks
    before each token of ``old``, and behind the last; ``new_blanks`` those of ``new``. ``start``..``end`` are the
    indexes of the change's own tokens in the old text. ``indent`` is the indentation of the line in which it begins.
    A ``single`` one is an exchange of several that stand together.
    """

    old: tuple[str, ...]
    new: tuple[int | str, ...]
    blanks: tuple[str, ...]
    new_blanks: tuple[str, ...]
    start: int
    end: int
    indent: str
    single: bool

    @cached_property
    def written(self) -> list[str]:
        """The new tokens."""
        return [part for part in self.new if isinstance(part, str)]

    @cached_property
    def gone(self) -> list[tuple[int, str]]:
        """The old tokens that do not stay, by index and text."""
        kept = {part for part in self.new if isinstance(part, int)}
        return [(index, text) for index, text in enumerate(self.old) if index not in kept]


def patterns(change: RecentChange) -> Iterator[Pattern]:
    """Yields the patterns of a change, the most specific ones first."""
    ops = change.exchanges
    if not ops:
        return
    groups = _grouped(change, ops)
    if len(groups) > 1:
        yield from _patterns(change, ops)
    for own in groups:
        yield from _patterns(change, own)
    for op in ops:
        if any(len(group) > 1 and op in group for group in groups):
            yield from (one for one in _patterns(change, [op], single=True) if any(map(is_word, one.old)))


def _patterns(change: RecentChange, ops: Sequence[Hunk], *, single: bool = False) -> Iterator[Pattern]:
    """Yields the patterns of some exchanges: with their neighbours, where they say little."""
    start, end = ops[0].start, ops[-1].end
    weak = sum(map(change.new.bits, change.old.texts[start:end])) < WEAK_BITS
    bare = not any(map(is_word, change.old.texts[start:end]))
    sides = ((1, 1), (1, 0), (0, 1)) if start == end else ((1, 1),) if weak and bare else ((0, 0),)
    for left, right in sides:
        found = _pattern(change, ops, left, right, single)
        if found is not None and (left + right != 1 or any(map(is_word, found.old))):
            yield found


def _grouped(change: RecentChange, ops: Sequence[Hunk]) -> list[list[Hunk]]:
    """Returns the exchanges that belong together: those of one line, or with few tokens between them."""
    groups = [[ops[0]]]
    for op in ops[1:]:
        last = groups[-1][-1]
        between = change.old.texts[last.end : op.start]
        if len(between) <= NEAR_TOKENS or not any(text in LINE_ENDS for text in between):
            groups[-1].append(op)
        else:
            groups.append([op])
    return groups


def _pattern(change: RecentChange, ops: Sequence[Hunk], left: int, right: int, single: bool) -> Pattern | None:
    """Returns the pattern of exchanges with all tokens between them, and some more tokens on each side.

    Returns None if it would change the brackets.
    """
    old, new = change.old, change.new
    first, last = ops[0], ops[-1]
    start, end, new_start, new_end = first.start, last.end, first.new_start, last.new_end
    left, right = min(left, start), min(right, len(old.all) - end)
    start, end, new_start, new_end = start - left, end + right, new_start - left, new_end + right
    if net(old.texts[start:end]) != net(new.texts[new_start:new_end]) or start == end:
        return None
    exchanged = [text for op in ops for text in (*old.texts[op.start : op.end], *new.texts[op.new_start : op.new_end])]
    if all(text in LINE_ENDS for text in exchanged):
        return None
    parts: list[int | str] = []
    position = start
    for op in ops:
        parts += range(position - start, op.start - start)
        parts += new.texts[op.new_start : op.new_end]
        position = op.end
    parts += range(position - start, end - start)
    return Pattern(
        tuple(old.texts[start:end]),
        tuple(parts),
        tuple(old.blank(index) for index in range(start, end + 1)),
        tuple(new.blank(index) for index in range(new_start, new_end + 1)),
        start,
        end,
        old.indent(start),
        single,
    )
