"""Generalises a change: patterns of old tokens, and the new tokens that they would become elsewhere.

A change exchanges some tokens and leaves others between them alone. The most specific pattern demands all of them; a
generalised one lets the words that the change left alone be others at another place, and carries them over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lacuna_model.core import work
from lacuna_model.next_edit.changes import RecentChange
from lacuna_model.next_edit.tokens import LINE_ENDS, QUOTES, is_name, is_word, net
from lacuna_model.text.diff import Hunk
from lacuna_model.text.lines import unmatched

WEAK_BITS = 7.0  # tokens that say less need a neighbour on each side
LEAST_VALUE = 3  # tokens of a value that is worth a name,
VALUE_BITS = 10.0  # which say at least so much
MOVED_NS = 500  # nominal nanoseconds: the work of a comparison with a token that was written
NEAR_TOKENS = 3  # exchanges with at most so many tokens between them are one
Kind = Literal["joint", "group", "single", "extracted"]


@dataclass(frozen=True, slots=True)
class Literal_:
    """A token that must be there."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """Tokens that may differ: one word if ``single``, else any balanced ones of one line."""

    single: bool


@dataclass(frozen=True, slots=True)
class Written:
    """A new token."""

    text: str


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of the pattern with this index, carried over."""

    index: int


Element = Literal_ | Variable
Output = Written | Kept


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
        return sum(isinstance(element, Variable) for element in self.old)

    @property
    def literals(self) -> list[str]:
        """The tokens that must be there."""
        return [element.text for element in self.old if isinstance(element, Literal_)]

    @property
    def written(self) -> list[str]:
        """The new tokens."""
        return [element.text for element in self.new if isinstance(element, Written)]


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
    first, last = ops[0], ops[-1]
    start, end, new_start, new_end = first.start, last.end, first.new_start, last.new_end
    left, right = min(left, start), min(right, len(old.all) - end)
    start, end, new_start, new_end = start - left, end + right, new_start - left, new_end + right
    if net(old.texts[start:end]) != net(new.texts[new_start:new_end]) or start == end:
        return None
    exchanged = [text for op in ops for text in (*old.texts[op.start : op.end], *new.texts[op.new_start : op.new_end])]
    if all(text in LINE_ENDS for text in exchanged):
        return None
    kept = {}
    position, new_position = start, new_start
    for op in (*ops, None):
        stop = op.start if op is not None else end
        while position < stop:
            kept[new_position] = position
            position, new_position = position + 1, new_position + 1
        if op is not None:
            position, new_position = op.end, op.new_end
    outputs: list[Output] = []
    for index in range(new_start, new_end):
        outputs.append(Kept(kept[index] - start) if index in kept else Written(new.texts[index]))
    return Pattern(
        kind,
        tuple(Literal_(text) for text in old.texts[start:end]),
        tuple(outputs),
        tuple(old.blank(index) for index in range(start, end + 1)),
        tuple(new.blank(index) for index in range(new_start, new_end + 1)),
        start,
        end,
        old.indent(start),
    )


def generalised(exact: Pattern) -> Pattern | None:
    """Returns the pattern with variables for the words that the change left alone; None if there are none.

    A run of tokens that was deleted at one place of the change and written at another has moved: it is a variable, too.
    """
    texts = exact.literals
    moved = _rewritten_runs(exact)
    kept = {output.index for output in exact.new if isinstance(output, Kept)}
    said = _in_strings(texts) if not exact.written else frozenset[int]()
    elements: list[Element] = []
    blanks: list[str] = []
    places: dict[int, int] = {}  # old index -> index of the element
    index = 0
    while index < len(texts):
        length = next((size for begin, size, _ in moved if begin == index), 0)
        blanks.append(exact.blanks[index])
        if length:
            places |= {index + offset: len(elements) for offset in range(length)}
            elements.append(Variable(single=length == 1))
            index += length
            continue
        places[index] = len(elements)
        varies = is_word(texts[index]) and (index in kept or index in said)
        elements.append(Variable(single=True) if varies else Literal_(texts[index]))
        index += 1
    if not any(isinstance(element, Variable) for element in elements):
        return None
    if not any(isinstance(element, Literal_) and is_word(element.text) for element in elements) and len(elements) < 4:
        return None
    outputs: list[Output] = []
    new_blanks: list[str] = []
    position = 0
    while position < len(exact.new):
        move = next((entry for entry in moved if entry[2] == position), None)
        output = exact.new[position]
        new_blanks.append(exact.new_blanks[position])
        if move is not None:
            outputs.append(Kept(places[move[0]]))
            position += move[1]
            continue
        outputs.append(Kept(places[output.index]) if isinstance(output, Kept) else output)
        position += 1
    return replace(
        exact,
        old=tuple(elements),
        new=tuple(outputs),
        blanks=(*blanks, exact.blanks[-1]),
        new_blanks=(*new_blanks, exact.new_blanks[-1]),
    )


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
                old = tuple(Literal_(text) for text in own)
                blanks = tuple(tokens.blank(at + 2 + len(value) - len(own) + number) for number in range(len(own)))
                end = change.old_span[1]
                new_blanks = (blanks[0], "")
                yield Pattern("extracted", old, (Written(name),), (*blanks, ""), new_blanks, end, end, "")


def collapsed(exact: Pattern) -> Pattern | None:
    """Returns the pattern with one variable for each run of several kept words of one line; None if there is none."""
    kept = {output.index: position for position, output in enumerate(exact.new) if isinstance(output, Kept)}
    texts = exact.literals
    runs: list[tuple[int, int]] = []
    index = 0
    while index < len(texts):
        stop = index
        while stop in kept and kept[stop] == kept[index] + stop - index and texts[stop] not in LINE_ENDS:
            stop += 1
        if stop - index > 1 and any(map(is_word, texts[index:stop])) and not unmatched(texts[index:stop]):
            runs.append((index, stop))
        index = max(stop, index + 1)
    if not runs:
        return None
    elements: list[Element] = []
    blanks: list[str] = []
    places: dict[int, int] = {}
    inner = {index for start, stop in runs for index in range(start + 1, stop)}
    starts = {start for start, _ in runs}
    for index, text in enumerate(texts):
        if index not in inner:
            blanks.append(exact.blanks[index])
            places[index] = len(elements)
            elements.append(Variable(single=False) if index in starts else Literal_(text))
    if not any(isinstance(element, Literal_) for element in elements):
        return None
    outputs: list[Output] = []
    new_blanks: list[str] = []
    for position, output in enumerate(exact.new):
        if isinstance(output, Kept) and output.index in inner:
            continue
        new_blanks.append(exact.new_blanks[position])
        outputs.append(Kept(places[output.index]) if isinstance(output, Kept) else output)
    return replace(
        exact,
        old=tuple(elements),
        new=tuple(outputs),
        blanks=(*blanks, exact.blanks[-1]),
        new_blanks=(*new_blanks, exact.new_blanks[-1]),
    )


def _rewritten_runs(exact: Pattern) -> list[tuple[int, int, int]]:
    """Returns the runs that were deleted and written again: old index, length, and index among the new tokens."""
    kept = {output.index for output in exact.new if isinstance(output, Kept)}
    texts = exact.literals
    written: dict[str, list[int]] = {}
    for position, output in enumerate(exact.new):
        if isinstance(output, Written):
            written.setdefault(output.text, []).append(position)
    found: list[tuple[int, int, int]] = []
    index = 0
    while index < len(texts):
        best = (0, 0)
        if index not in kept:
            for position in written.get(texts[index], ()):
                size = 0
                while (
                    index + size < len(texts)
                    and position + size < len(exact.new)
                    and index + size not in kept
                    and isinstance(output := exact.new[position + size], Written)
                    and output.text == texts[index + size]
                ):
                    size += 1
                work.spend(MOVED_NS * (1 + size))
                best = max(best, (size, position))
        size, position = best
        run = texts[index : index + size]
        if size and any(map(is_word, run)) and not unmatched(run):
            found.append((index, size, position))
            index += size
        else:
            index += 1
    return found
