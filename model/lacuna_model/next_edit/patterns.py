"""Generalises a change: patterns of old tokens, and the new tokens that they would become elsewhere.

A change exchanges some tokens and leaves others between them alone. The most specific pattern demands all of them; a
generalised one lets the words that the change left alone be others at another place, and carries them over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import groupby, takewhile
from typing import Literal, NamedTuple

from lacuna_model.core import work
from lacuna_model.next_edit.changes import LINE_ENDS, QUOTES, RecentChange, is_name, is_word, net
from lacuna_model.text.diff import Hunk
from lacuna_model.text.lines import unmatched

WEAK_BITS = 7.0  # tokens that say less need a neighbour on each side
LEAST_VALUE = 3  # tokens of a value that is worth a name,
VALUE_BITS = 10.0  # which say at least so much
MOVED_NS = 500  # nominal nanoseconds: the work of a comparison with a token that was written
NEAR_TOKENS = 3  # exchanges with at most so many tokens between them are one
Kind = Literal["joint", "group", "single", "extracted"]


class Variable(Enum):
    """Tokens that may differ: one word, or any balanced ones of one line."""

    WORD = 1
    TOKENS = 2


Element = str | Variable
# A new token, or the index of the part of the pattern that is carried over.
Output = str | int


@dataclass(frozen=True)
class Pattern:
    """Tokens to find, and what becomes of them.

    ``blanks`` are the blanks before each element of ``old``, and behind the last; ``new_blanks`` those of ``new``.
    ``start``..``end`` are the indexes of the change's own tokens in the old text. ``indent`` is the indentation of
    the line in which it begins.
    """

    kind: Kind
    old: tuple[Element, ...]
    new: tuple[Output, ...]
    blanks: tuple[str, ...]
    new_blanks: tuple[str, ...]
    start: int
    end: int
    indent: str

    @property
    def variables(self) -> int:
        """How many parts may differ."""
        return len(self.old) - len(self.literals)

    @cached_property
    def literals(self) -> list[str]:
        """The tokens that must be there."""
        return [element for element in self.old if isinstance(element, str)]

    @cached_property
    def written(self) -> list[str]:
        """The new tokens."""
        return [output for output in self.new if isinstance(output, str)]

    @cached_property
    def kept(self) -> dict[int, int]:
        """Where the parts that are carried over stand among the new ones, by their indexes."""
        return {output: position for position, output in enumerate(self.new) if isinstance(output, int)}

    @cached_property
    def gone(self) -> dict[int, str]:
        """The tokens that are exchanged, by their indexes."""
        found = enumerate(self.old)
        return {index: part for index, part in found if isinstance(part, str) and index not in self.kept}


def patterns(change: RecentChange) -> Iterator[Pattern]:
    """Yields the patterns of a change, the most specific ones first."""
    ops = change.exchanges
    if not ops:
        return
    groups = _grouped(change, ops)
    if len(groups) > 1:
        yield from _family(change, ops, "joint")
    for own in groups:
        yield from _family(change, own, "group")
    for op in ops:
        if any(len(group) > 1 and op in group for group in groups):
            yield from (pattern for pattern in _family(change, [op], "single") if any(map(is_word, pattern.literals)))


def _family(change: RecentChange, ops: Sequence[Hunk], kind: Kind) -> Iterator[Pattern]:
    """Yields a pattern of some exchanges, exact and generalised."""
    start, end = ops[0].start, ops[-1].end
    weak = sum(map(change.new.bits, change.old.texts[start:end])) < WEAK_BITS
    bare = not any(map(is_word, change.old.texts[start:end]))
    sides = ((1, 1), (1, 0), (0, 1)) if start == end else ((1, 1),) if weak and bare else ((0, 0),)
    for left, right in sides:
        exact = _pattern(change, ops, kind, left, right)
        if exact is None or (left + right == 1 and not any(map(is_word, exact.literals))):
            continue
        yield exact
        yield from (pattern for pattern in (generalised(exact), collapsed(exact)) if pattern is not None)


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


def _pattern(change: RecentChange, ops: Sequence[Hunk], kind: Kind, left: int, right: int) -> Pattern | None:
    """Returns the pattern of exchanges with all tokens between them, and some more tokens on each side.

    Returns None if it would change the brackets.
    """
    old, new = change.old, change.new
    left, right = min(left, ops[0].start), min(right, len(old.texts) - ops[-1].end)
    start, end = ops[0].start - left, ops[-1].end + right
    new_start, new_end = ops[0].new_start - left, ops[-1].new_end + right
    if net(old.texts[start:end]) != net(new.texts[new_start:new_end]) or start == end:
        return None
    gone = {index for op in ops for index in range(op.start, op.end)}
    fresh = {index for op in ops for index in range(op.new_start, op.new_end)}
    exchanged = [*(old.texts[index] for index in gone), *(new.texts[index] for index in fresh)]
    if all(text in LINE_ENDS for text in exchanged):
        return None
    kept = iter([index - start for index in range(start, end) if index not in gone])
    return Pattern(
        kind,
        tuple(old.texts[start:end]),
        tuple(new.texts[index] if index in fresh else next(kept) for index in range(new_start, new_end)),
        tuple(old.blank(index) for index in range(start, end + 1)),
        tuple(new.blank(index) for index in range(new_start, new_end + 1)),
        start,
        end,
        old.indent(start),
    )


class _Run(NamedTuple):
    """Old tokens that become one variable: the index of the first, how many, and where they stand among the new ones.

    They stand nowhere (-1) where they are deleted.
    """

    start: int
    size: int
    position: int


def generalised(exact: Pattern) -> Pattern | None:
    """Returns the pattern with variables for the words that the change left alone; None if there are none.

    A run of tokens that was deleted at one place of the change and written at another has moved: it is a variable, too.
    """
    texts, moved = exact.literals, _moved(exact)
    within = {index for run in moved for index in range(run.start, run.start + run.size)}
    said = _in_strings(texts) if not exact.written else frozenset[int]()
    alone = [index for index in exact.kept.keys() | said if index not in within and is_word(texts[index])]
    found = _with_variables(exact, [*moved, *(_Run(index, 1, exact.kept.get(index, -1)) for index in alone)])
    if not found.variables or (not any(map(is_word, found.literals)) and len(found.old) < 4):
        return None
    return found


def collapsed(exact: Pattern) -> Pattern | None:
    """Returns the pattern with one variable for each run of several kept words of one line; None if there is none."""
    kept, texts = exact.kept, exact.literals

    def shift(index: int) -> int | None:
        return kept[index] - index if index in kept and texts[index] not in LINE_ENDS else None

    runs: list[_Run] = []
    for by, group in groupby(range(len(texts)), shift):
        start, *more = group
        run = texts[start : start + 1 + len(more)]
        if by is not None and more and any(map(is_word, run)) and not unmatched(run):
            runs.append(_Run(start, len(run), start + by))
    found = _with_variables(exact, runs)
    return found if runs and found.literals else None


def _with_variables(exact: Pattern, runs: Sequence[_Run]) -> Pattern:
    """Returns the pattern with a variable in the place of each run."""
    inner = {index for run in runs for index in range(run.start + 1, run.start + run.size)}
    left = [index for index in range(len(exact.old)) if index not in inner]
    variables = {run.start: Variable.WORD if run.size == 1 else Variable.TOKENS for run in runs}
    moved = {run.position: run for run in reversed(runs)}
    outputs, new_blanks, position = list[Output](), list[str](), 0
    while position < len(exact.new):
        run = moved.get(position)
        output = run.start if run is not None else exact.new[position]
        outputs.append(left.index(output) if isinstance(output, int) else output)
        new_blanks.append(exact.new_blanks[position])
        position += run.size if run is not None else 1
    return replace(
        exact,
        old=tuple(variables.get(index, exact.old[index]) for index in left),
        new=tuple(outputs),
        blanks=tuple(exact.blanks[index] for index in (*left, len(exact.old))),
        new_blanks=(*new_blanks, exact.new_blanks[-1]),
    )


def _moved(exact: Pattern) -> list[_Run]:
    """Returns the runs that were deleted and written again."""
    texts, found = exact.literals, list[_Run]()
    index = 0
    while index < len(texts):
        places = [at for at, text in enumerate(exact.new) if text == texts[index]] if index in exact.gone else []
        size, position = max(((_size(exact, index, at), at) for at in places), default=(0, 0))
        run = texts[index : index + size]
        if size and any(map(is_word, run)) and not unmatched(run):
            found.append(_Run(index, size, position))
            index += size
        else:
            index += 1
    return found


def _size(exact: Pattern, index: int, position: int) -> int:
    """Returns how many tokens that are gone from an index on are written from a position on."""
    pairs = zip(range(index, len(exact.old)), exact.new[position:], strict=False)
    size = sum(1 for _ in takewhile(lambda pair: exact.gone.get(pair[0]) == pair[1], pairs))
    work.spend(MOVED_NS * (1 + size))
    return size


def _in_strings(texts: Sequence[str]) -> frozenset[int]:
    """Returns the indexes of the tokens in strings: what a deleted call has said may differ at another place."""
    found: list[int] = []
    quote = ""
    for index, text in enumerate(texts):
        if quote and text != quote:
            found.append(index)
        elif text in QUOTES:
            quote = "" if text == quote else text
    return frozenset(found)


def extracted(change: RecentChange) -> Iterator[Pattern]:
    """Yields a pattern for each new variable of the change: its value may become its name elsewhere."""
    first, last = change.new_span
    tokens = change.new
    for at in range(first, last - 1):
        name, sign = tokens.texts[at : at + 2]
        if sign not in ("=", ":=") or not is_name(name) or name in change.old.places:
            continue
        stop = next((index for index in range(at + 2, last) if tokens.texts[index] in LINE_ENDS), last)
        value = tokens.texts[at + 2 : stop]
        while value and value[-1] in (";", ","):
            value = value[:-1]
        inner = value[2:] if len(value) > 2 and value[1] == "." else []
        for own in (value, inner):
            if len(own) >= LEAST_VALUE and not unmatched(own) and sum(map(tokens.bits, own)) >= VALUE_BITS:
                blanks = tuple(tokens.blank(at + 2 + len(value) - len(own) + number) for number in range(len(own)))
                end = change.old_span[1]
                yield Pattern("extracted", tuple(own), (name,), (*blanks, ""), (blanks[0], ""), end, end, "")
