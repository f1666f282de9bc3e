"""Finds the places of a pattern, and what each would become there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lacuna_model.core import work
from lacuna_model.next_edit.patterns import Kept, Literal_, Pattern, Variable
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
    indent = tokens.indent(first)
    pieces: list[str] = []
    previous = -1  # the element of the pattern behind which the next output stands; None behind a written token
    kept_before = True
    for position, output in enumerate(pattern.new):
        blank = pattern.new_blanks[position]
        if isinstance(output, Kept):
            follows = kept_before and output.index == previous + 1
            pieces.append(
                _blank(pattern, tokens, parts, output.index, blank, indent)
                if follows
                else _as_indented(blank, pattern, indent)
            )
            begin, stop = parts[output.index]
            pieces.append(tokens.text[tokens.all[begin].start : tokens.all[stop - 1].end])
            previous, kept_before = output.index, True
        else:
            same = position == 0 and blank == pattern.blanks[0]
            pieces.append(tokens.blank(first) if same else _as_indented(blank, pattern, indent))
            pieces.append(_line_end(output.text, tokens))
            kept_before = False
    closing = pattern.new_blanks[-1]
    if not pattern.new:
        pieces = [_closing(pattern, tokens, first, last, closing, indent)]
    elif closing == pattern.blanks[-1]:
        pieces.append(tokens.blank(last))
    else:
        pieces.append(_as_indented(closing, pattern, indent))
    start = tokens.all[first - 1].end if first else 0
    end = tokens.all[last].start if last < len(tokens.all) else len(tokens.text)
    text = "".join(pieces)
    return None if text == tokens.text[start:end] else _trimmed(pattern, tokens, parts, start, end, text)


def _blank(
    pattern: Pattern, tokens: TokenizedText, parts: tuple[tuple[int, int], ...], index: int, blank: str, indent: str
) -> str:
    """Returns the blanks before an element that follows its neighbour as before: its own, if the change kept them."""
    own = tokens.blank(parts[index][0])
    return own if blank == pattern.blanks[index] else _as_indented(blank, pattern, indent)


def _closing(pattern: Pattern, tokens: TokenizedText, first: int, last: int, closing: str, indent: str) -> str:
    """Returns the blanks that are left of a deletion."""
    own = tokens.blank(first), tokens.blank(last)
    if closing == pattern.blanks[0]:
        return own[0]
    if closing == pattern.blanks[-1]:
        return own[1]
    return _as_indented(closing, pattern, indent)


def _as_indented(blank: str, pattern: Pattern, indent: str) -> str:
    """Returns the blanks of the change at a place with another indentation."""
    if blank.startswith(pattern.indent) and pattern.indent and len(blank) >= len(pattern.indent) > 1:
        return indent + blank[len(pattern.indent) :]
    return blank


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
