"""Finds the places of a pattern, and what each would become there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lacuna_model.core import work
from lacuna_model.next_edit.changes import LINE_ENDS, TokenizedText, is_word
from lacuna_model.next_edit.patterns import Element, Output, Pattern, Variable
from lacuna_model.text.diff import common_ends
from lacuna_model.text.lines import unmatched

LONGEST_VARIABLE = 120  # tokens
# Behind a variable; None is the end of the text.
_EDGES = LINE_ENDS | {None, ")", "]", "}", ",", ";", ":"}
# The work, in nominal nanoseconds: of an element that is compared, of a token in it, and of one that is written.
STEP_NS, TOKEN_NS, RENDERED_NS = 1_500, 100, 4_000


Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class MatchedPlace:
    """The tokens ``first``..``last`` match a pattern; ``parts`` are the token indexes of each of its elements.

    The characters ``start``..``end`` would become ``text``.
    """

    pattern: Pattern
    first: int
    last: int
    parts: Parts
    start: int
    end: int
    text: str


def places(
    pattern: Pattern,
    tokens: TokenizedText,
    avoided: Sequence[tuple[int, int]] = (),
    *,
    until: int | None = None,
) -> Iterator[MatchedPlace]:
    """Yields the places of a pattern in a text, except those that touch the ``avoided`` ranges of tokens.

    The search ends at the mark ``until`` of this thread's work.
    """
    parts = [(number, part) for number, part in enumerate(pattern.old) if isinstance(part, str)]
    if not parts:
        return
    # The rarest token that has to be there.
    number, text = min(parts, key=lambda one: (len(tokens.places.get(one[1], ())), one[0]))
    reach = int(len(pattern.kept) == len(pattern.old))  # what is inserted beside the change would be inserted twice
    for at in tokens.places.get(text, ()):
        if until is not None and work.reached(until):
            return
        if (matched := _matched(pattern, tokens, number, at)) is None:
            continue
        first, last = matched[0][0], matched[-1][1]
        if any(first < end + reach and start - reach < last for start, end in avoided):
            continue
        if (place := _Writing(pattern, tokens, matched).place()) is not None:
            yield place


def _matched(pattern: Pattern, tokens: TokenizedText, number: int, at: int) -> Parts | None:
    """Returns the match whose element ``number`` is the token ``at``; None if there is none."""
    ends = {number - 1: at, number: at + 1}  # of elements before that one the begin of the next
    for index in range(number - 1, -1, -1):
        begin = _fits(pattern, tokens, index, ends[index], -1)
        if begin is None:
            return None
        ends[index - 1] = begin
    for index in range(number + 1, len(pattern.old)):
        end = _fits(pattern, tokens, index, ends[index - 1], 1)
        if end is None:
            return None
        ends[index] = end
    return tuple((ends[index - 1], ends[index]) for index in range(len(pattern.old)))


def _fits(pattern: Pattern, tokens: TokenizedText, index: int, position: int, step: int) -> int | None:
    """Returns where an element that begins (or ends, for ``step`` -1) at a token ends (or begins); None if nowhere."""
    work.spend(STEP_NS)
    texts, element = tokens.texts, pattern.old[index]
    here = position if step == 1 else position - 1
    if not 0 <= here < len(texts):
        return None
    if element is not Variable.TOKENS:
        text = texts[here]
        same = is_word(text) if element is Variable.WORD else text == element or {text, element} <= LINE_ENDS
        return position + step if same else None
    behind = pattern.old[index + 1] if step == 1 and index + 1 < len(pattern.old) else None
    for size in range(1, LONGEST_VARIABLE):
        work.spend(STEP_NS + size * TOKEN_NS)
        low, high = (position, position + size) if step == 1 else (position - size, position)
        if low < 0 or high > len(texts) or any(text in LINE_ENDS for text in texts[low:high]):
            return None
        edge = texts[high] if step == 1 and high < len(texts) else None
        if not unmatched(texts[low:high]) and (edge == behind if isinstance(behind, str) else edge in _EDGES):
            return high if step == 1 else low
    return None


class _Writing:
    """What the new tokens of a pattern are at a place, and the blanks before each of them and behind the last one."""

    def __init__(self, pattern: Pattern, tokens: TokenizedText, parts: Parts) -> None:
        self._pattern, self._tokens, self._parts = pattern, tokens, parts
        self._first, self._last = parts[0][0], parts[-1][1]
        self._own = [tokens.blank(index) for index in (*(first for first, _ in parts), self._last)]
        self._ends = [self._is_line_end(output) for output in pattern.new]

    def place(self) -> MatchedPlace | None:
        """Returns the place with its new text, without what stays at both ends; None if all of it stays."""
        pattern, tokens = self._pattern, self._tokens
        work.spend(len(pattern.new) * RENDERED_NS)
        pieces = [f"{self._blank(position)}{self._text(output)}" for position, output in enumerate(pattern.new)]
        text = "".join((*pieces, self._blank(len(pattern.new))))
        start, end = tokens.ends[self._first], tokens.starts[self._last]
        old = tokens.text[start:end]
        lead, tail = common_ends(old, text)
        new = text[lead : len(text) - tail]
        found = MatchedPlace(pattern, self._first, self._last, self._parts, start + lead, end - tail, new)
        return None if text == old else found

    def _text(self, output: Output) -> str:
        text = self._tokens.text
        if isinstance(output, int):
            begin, stop = self._parts[output]
            return text[self._tokens.starts[begin] : self._tokens.ends[stop]]
        return ("\r\n" if "\r\n" in text[:2000] else "\n") if output in LINE_ENDS else output

    def _blank(self, position: int) -> str:
        """Returns the blanks before a new token, or behind the last one: the place's own, where the change kept them.

        Those of a new line are indented by the line of the change that is indented most like it.
        """
        pattern, index = self._pattern, self._kept_blank(position)
        blank = pattern.new_blanks[position]
        if not self._begins_line(position):
            return self._own[index] if index is not None and blank == pattern.blanks[index] else blank
        if index is not None:
            return _as_indented(blank, pattern.blanks[index], self._own[index])
        begun = [number + 1 for number, part in enumerate(pattern.old) if part in LINE_ENDS]
        lines = [(pattern.blanks[number], self._own[number]) for number in begun]
        lines.insert(0, (pattern.indent, self._tokens.indent(self._first)))
        return _as_indented(blank, *min(lines, key=lambda one: abs(len(one[0]) - len(blank))))

    def _kept_blank(self, position: int) -> int | None:
        """Returns which of the old blanks stands before a new token; None for one that follows another than before."""
        old, new = self._pattern.old, self._pattern.new
        if not new:  # of a deletion, those that are left
            blanks = self._pattern.blanks
            return next((index for index in (0, len(old)) if blanks[index] == self._pattern.new_blanks[0]), None)
        if position == 0:
            return 0
        if position == len(new):
            return len(old) if self._ends[-1] == self._is_line_end(old[-1]) else None
        output, previous = new[position], new[position - 1]
        if not isinstance(output, int) or output == 0:
            return None
        begin_lines = self._ends[position - 1] and self._is_line_end(output - 1)
        return output if begin_lines or previous == output - 1 else None

    def _begins_line(self, position: int) -> bool:
        """Whether the blanks before a new token are the indentation of a line."""
        texts, first, last = self._tokens.texts, self._first, self._last
        left = self._ends[position - 1] if position else first == 0 or texts[first - 1] in LINE_ENDS
        is_last = position == len(self._ends)
        return left and not (last < len(texts) and texts[last] in LINE_ENDS if is_last else self._ends[position])

    def _is_line_end(self, part: Element | Output) -> bool:
        return (self._pattern.old[part] if isinstance(part, int) else part) in LINE_ENDS


def _as_indented(blank: str, before: str, own: str) -> str:
    """Returns the indentation of a new line at a place, by a line with that of ``before``, which there is ``own``."""
    if blank.startswith(before):
        return own + blank.removeprefix(before)
    less = before.removeprefix(blank)
    return own.removesuffix(less) if before.startswith(blank) and own.endswith(less) else blank
