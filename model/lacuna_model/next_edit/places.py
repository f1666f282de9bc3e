"""Finds the places of a pattern, and what each would become there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lacuna_model.core import work
from lacuna_model.next_edit.patterns import Element, Output, Pattern, Variable
from lacuna_model.next_edit.tokens import LINE_ENDS, TokenizedText, is_word
from lacuna_model.text.diff import common_ends
from lacuna_model.text.lines import unmatched

LONGEST_VARIABLE = 120  # tokens
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
        if (place := _rendered(pattern, tokens, matched)) is not None:
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
        same = is_word(texts[here]) if element is Variable.WORD else _same(texts[here], element)
        return position + step if same else None
    behind = pattern.old[index + 1] if step == 1 and index + 1 < len(pattern.old) else None
    for size in range(1, LONGEST_VARIABLE):
        work.spend(STEP_NS + size * TOKEN_NS)
        low, high = (position, position + size) if step == 1 else (position - size, position)
        if low < 0 or high > len(texts) or any(text in LINE_ENDS for text in texts[low:high]):
            return None
        edge = texts[high] if step == 1 and high < len(texts) else None
        if not unmatched(texts[low:high]) and (edge == behind if isinstance(behind, str) else _is_edge(edge)):
            return high if step == 1 else low
    return None


def _same(text: str, wanted: str) -> bool:
    return text == wanted or (text in LINE_ENDS and wanted in LINE_ENDS)


def _is_edge(text: str | None) -> bool:
    return text is None or text in LINE_ENDS or text in (")", "]", "}", ",", ";", ":")


def _rendered(pattern: Pattern, tokens: TokenizedText, parts: Parts) -> MatchedPlace | None:
    """Returns the place with its new text, without what stays at both ends; None if all of it stays."""
    work.spend(len(pattern.new) * RENDERED_NS)
    first, last = parts[0][0], parts[-1][1]
    pieces = [] if pattern.new else [_left(pattern, tokens, parts)]
    for position, output in enumerate(pattern.new):
        pieces.append(_blank(pattern, tokens, parts, position))
        if isinstance(output, int):
            begin, stop = parts[output]
            pieces.append(tokens.text[tokens.starts[begin] : tokens.ends[stop]])
        else:
            pieces.append(_line_end(output, tokens))
    if pattern.new:
        pieces.append(_blank(pattern, tokens, parts, len(pattern.new)))
    start, end = tokens.ends[first], tokens.starts[last]
    old, text = tokens.text[start:end], "".join(pieces)
    lead, tail = common_ends(old, text)
    new = text[lead : len(text) - tail]
    return None if text == old else MatchedPlace(pattern, first, last, parts, start + lead, end - tail, new)


def _blank(pattern: Pattern, tokens: TokenizedText, parts: Parts, position: int) -> str:
    """Returns the blanks before a new token, or behind the last one: the place's own, where the change kept them."""
    blank, index = pattern.new_blanks[position], _kept_blank(pattern, position)
    begins = _begins_line(pattern, tokens, parts, position)
    if index is None:
        return _as_indented(blank, _indents(pattern, tokens, parts)) if begins else blank
    before, own = pattern.blanks[index], _own_blank(tokens, parts, index)
    if begins:
        return _as_indented(blank, [(before, own)])
    return own if blank == before else blank


def _kept_blank(pattern: Pattern, position: int) -> int | None:
    """Returns which of the old blanks stands before a new token; None for one that follows another than before."""
    if position == 0:
        return 0
    if position == len(pattern.new):
        same = _is_line_end(pattern, pattern.new[-1]) == _is_line_end(pattern, pattern.old[-1])
        return len(pattern.old) if same else None
    output, previous = pattern.new[position], pattern.new[position - 1]
    if not isinstance(output, int) or output == 0:
        return None
    begin_lines = _is_line_end(pattern, previous) and _is_line_end(pattern, pattern.old[output - 1])
    return output if begin_lines or previous == output - 1 else None


def _begins_line(pattern: Pattern, tokens: TokenizedText, parts: Parts, position: int) -> bool:
    """Whether the blanks before a new token are the indentation of a line."""
    first, last = parts[0][0], parts[-1][1]
    ends = [_is_line_end(pattern, output) for output in pattern.new[max(position - 1, 0) : position + 1]]
    if position == 0:
        ends.insert(0, first == 0 or tokens.texts[first - 1] in LINE_ENDS)
    if position == len(pattern.new):
        ends.append(last < len(tokens.texts) and tokens.texts[last] in LINE_ENDS)
    return ends == [True, False]


def _is_line_end(pattern: Pattern, part: Element | Output) -> bool:
    element = pattern.old[part] if isinstance(part, int) else part
    return element in LINE_ENDS


def _own_blank(tokens: TokenizedText, parts: Parts, index: int) -> str:
    """Returns the blanks before an element at a place, or behind the last one."""
    return tokens.blank(parts[index][0] if index < len(parts) else parts[-1][1])


def _left(pattern: Pattern, tokens: TokenizedText, parts: Parts) -> str:
    """Returns the blanks that are left of a deletion."""
    closing = pattern.new_blanks[-1]
    for index in (0, len(parts)):
        if closing == pattern.blanks[index]:
            return _own_blank(tokens, parts, index)
    begins = _begins_line(pattern, tokens, parts, 0)
    return _as_indented(closing, _indents(pattern, tokens, parts)) if begins else closing


def _indents(pattern: Pattern, tokens: TokenizedText, parts: Parts) -> Sequence[tuple[str, str]]:
    """Returns the indentation of the lines of a pattern's old tokens, each with that of the same line at a place."""
    begun = [index + 1 for index, part in enumerate(pattern.old) if _is_line_end(pattern, part)]
    inner = [(pattern.blanks[index], _own_blank(tokens, parts, index)) for index in begun]
    return [(pattern.indent, tokens.indent(parts[0][0])), *inner]


def _as_indented(blank: str, indents: Sequence[tuple[str, str]]) -> str:
    """Returns the indentation of a new line at a place, by the line of the change that is indented most like it."""
    before, own = min(indents, key=lambda one: abs(len(one[0]) - len(blank)))
    if blank.startswith(before):
        return own + blank.removeprefix(before)
    less = before.removeprefix(blank)
    return own.removesuffix(less) if before.startswith(blank) and own.endswith(less) else blank


def _line_end(text: str, tokens: TokenizedText) -> str:
    if text not in LINE_ENDS:
        return text
    return "\r\n" if "\r\n" in tokens.text[:2000] else "\n"
