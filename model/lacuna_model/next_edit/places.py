"""Finds the places of a pattern, and what each would become there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lacuna_model.core import work
from lacuna_model.next_edit.patterns import Element, Kept, Literal_, Output, Pattern, Variable
from lacuna_model.next_edit.tokens import LINE_ENDS, TokenizedText, is_word
from lacuna_model.text.diff import common_ends
from lacuna_model.text.lines import unmatched

MAX_PLACES = 200
LONGEST_VARIABLE = 120  # tokens
# The work, in nominal nanoseconds: of an element that is compared, of a token in it, and of one that is written.
STEP_NS, TOKEN_NS, RENDERED_NS = 1_500, 100, 4_000


@dataclass(frozen=True, slots=True)
class MatchedPlace:
    """The tokens ``first``..``last`` match a pattern; ``parts`` are the token indexes of each of its elements.

    The characters ``start``..``end`` would become ``text``.
    """

    pattern: Pattern
    first: int
    last: int
    parts: tuple[tuple[int, int], ...]
    start: int
    end: int
    text: str


def places(
    pattern: Pattern,
    tokens: TokenizedText,
    avoided: Sequence[tuple[int, int]] = (),
    *,
    until: int | None = None,
    accepts: Callable[[MatchedPlace], bool] = lambda _: True,
) -> Iterator[MatchedPlace]:
    """Yields the places of a pattern in a text, except those that touch the ``avoided`` ranges of tokens.

    At most ``MAX_PLACES`` that a caller ``accepts``. The search ends at the mark ``until`` of this thread's work.
    """
    anchor = _anchor(pattern, tokens)
    if anchor is None:
        return
    number, text = anchor
    inserts = {output.index for output in pattern.new if isinstance(output, Kept)} == set(range(len(pattern.old)))
    found = 0
    for at in tokens.places.get(text, ()):
        if until is not None and work.reached(until):
            return
        for parts in _around(pattern, tokens, number, at):
            first, last = parts[0][0], parts[-1][1]
            reach = int(inserts)  # what is inserted beside the change would be inserted twice
            if any(first < end + reach and start - reach < last for start, end in avoided) or found >= MAX_PLACES:
                continue
            place = _rendered(pattern, tokens, parts)
            if place is not None and accepts(place):
                found += 1
                yield place


def _anchor(pattern: Pattern, tokens: TokenizedText) -> tuple[int, str] | None:
    """Returns the index and text of the rarest token that has to be there."""
    choices = [
        (len(tokens.places.get(element.text, ())), number, element.text)
        for number, element in enumerate(pattern.old)
        if isinstance(element, Literal_)
    ]
    if not choices:
        return None
    _, number, text = min(choices)
    return number, text


def _around(pattern: Pattern, tokens: TokenizedText, number: int, at: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yields the match whose element ``number`` is the token ``at``, if there is one."""
    before: list[tuple[int, int]] = []
    position = at
    for element in reversed(pattern.old[:number]):
        begin = _fits(element, tokens, position, -1, pattern)
        if begin is None:
            return
        before.insert(0, (begin, position))
        position = begin
    behind: list[tuple[int, int]] = [(at, at + 1)]
    position = at + 1
    for index in range(number + 1, len(pattern.old)):
        stop = _fits(pattern.old[index], tokens, position, 1, pattern, index)
        if stop is None:
            return
        behind.append((position, stop))
        position = stop
    yield (*before, *behind)


def _fits(
    element: Literal_ | Variable, tokens: TokenizedText, position: int, step: int, pattern: Pattern, index: int = -1
) -> int | None:
    """Returns where an element that begins (or ends, for ``step`` -1) at a token ends (or begins); None if nowhere."""
    work.spend(STEP_NS)
    texts = tokens.texts
    here = position if step == 1 else position - 1
    if not 0 <= here < len(texts):
        return None
    if isinstance(element, Literal_):
        same = texts[here] == element.text or (texts[here] in LINE_ENDS and element.text in LINE_ENDS)
        return position + step if same else None
    if element.single:
        return position + step if is_word(texts[here]) else None
    following = pattern.old[index + 1] if 0 <= index < len(pattern.old) - 1 else None
    wanted = following.text if isinstance(following, Literal_) else None
    for size in range(1, LONGEST_VARIABLE):
        work.spend(STEP_NS + size * TOKEN_NS)
        low, high = (position, position + size) if step == 1 else (position - size, position)
        if low < 0 or high > len(texts) or any(text in LINE_ENDS for text in texts[low:high]):
            return None
        edge = texts[high] if step == 1 and high < len(texts) else None
        if not unmatched(texts[low:high]) and (edge == wanted if wanted is not None else _is_edge(edge)):
            return high if step == 1 else low
    return None


def _is_edge(text: str | None) -> bool:
    return text is None or text in LINE_ENDS or text in (")", "]", "}", ",", ";", ":")


def _rendered(pattern: Pattern, tokens: TokenizedText, parts: tuple[tuple[int, int], ...]) -> MatchedPlace | None:
    """Returns the place with its new text; None if that equals the old one."""
    work.spend(len(pattern.new) * RENDERED_NS)
    first, last = parts[0][0], parts[-1][1]
    pieces = [] if pattern.new else [_left(pattern, tokens, parts)]
    for position, output in enumerate(pattern.new):
        pieces.append(_blank(pattern, tokens, parts, position))
        if isinstance(output, Kept):
            begin, stop = parts[output.index]
            pieces.append(tokens.text[tokens.all[begin].start : tokens.all[stop - 1].end])
        else:
            pieces.append(_line_end(output.text, tokens))
    if pattern.new:
        pieces.append(_blank(pattern, tokens, parts, len(pattern.new)))
    start = tokens.all[first - 1].end if first else 0
    end = tokens.all[last].start if last < len(tokens.all) else len(tokens.text)
    text = "".join(pieces)
    return None if text == tokens.text[start:end] else _trimmed(pattern, tokens, parts, start, end, text)


def _blank(pattern: Pattern, tokens: TokenizedText, parts: tuple[tuple[int, int], ...], position: int) -> str:
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
    if not isinstance(output, Kept) or output.index == 0:
        return None
    begin_lines = _is_line_end(pattern, previous) and _is_line_end(pattern, pattern.old[output.index - 1])
    return output.index if begin_lines or previous == Kept(output.index - 1) else None


def _begins_line(pattern: Pattern, tokens: TokenizedText, parts: tuple[tuple[int, int], ...], position: int) -> bool:
    """Whether the blanks before a new token are the indentation of a line."""
    first, last = parts[0][0], parts[-1][1]
    ends = [_is_line_end(pattern, output) for output in pattern.new[max(position - 1, 0) : position + 1]]
    if position == 0:
        ends.insert(0, first == 0 or tokens.all[first - 1].ends_line)
    if position == len(pattern.new):
        ends.append(last < len(tokens.all) and tokens.all[last].ends_line)
    return ends == [True, False]


def _is_line_end(pattern: Pattern, part: Element | Output) -> bool:
    element = pattern.old[part.index] if isinstance(part, Kept) else part
    return not isinstance(element, Variable) and element.text in LINE_ENDS


def _own_blank(tokens: TokenizedText, parts: tuple[tuple[int, int], ...], index: int) -> str:
    """Returns the blanks before an element at a place, or behind the last one."""
    return tokens.blank(parts[index][0] if index < len(parts) else parts[-1][1])


def _left(pattern: Pattern, tokens: TokenizedText, parts: tuple[tuple[int, int], ...]) -> str:
    """Returns the blanks that are left of a deletion."""
    closing = pattern.new_blanks[-1]
    for index in (0, len(parts)):
        if closing == pattern.blanks[index]:
            return _own_blank(tokens, parts, index)
    begins = _begins_line(pattern, tokens, parts, 0)
    return _as_indented(closing, _indents(pattern, tokens, parts)) if begins else closing


def _indents(pattern: Pattern, tokens: TokenizedText, parts: tuple[tuple[int, int], ...]) -> Sequence[tuple[str, str]]:
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


def _trimmed(
    pattern: Pattern, tokens: TokenizedText, parts: tuple[tuple[int, int], ...], start: int, end: int, text: str
) -> MatchedPlace:
    """Returns the place without the characters that stay the same at both ends."""
    old = tokens.text[start:end]
    lead, tail = common_ends(old, text)
    return MatchedPlace(
        pattern, parts[0][0], parts[-1][1], parts, start + lead, end - tail, text[lead : len(text) - tail]
    )
