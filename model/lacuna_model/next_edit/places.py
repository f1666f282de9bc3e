"""Finds the places of a pattern, and what each would become there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lacuna_model.core import work
from lacuna_model.next_edit.patterns import Pattern
from lacuna_model.next_edit.tokens import LINE_ENDS, TokenizedText
from lacuna_model.text.diff import common_ends

MAX_PLACES = 200
# The work, in nominal nanoseconds: of a token that is compared, and of one that is written.
STEP_NS, RENDERED_NS = 1_500, 4_000


@dataclass(frozen=True, slots=True)
class MatchedPlace:
    """The tokens from ``first`` on match a pattern; the characters ``start``..``end`` would become ``text``."""

    pattern: Pattern
    first: int
    start: int
    end: int
    text: str

    @property
    def last(self) -> int:
        """The index behind its last token."""
        return self.first + len(self.pattern.old)


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
    # The rarest token is looked up.
    number, text = min(enumerate(pattern.old), key=lambda one: (len(tokens.places.get(one[1], ())), one[0]))
    reach = int(not pattern.gone)  # what is inserted beside the change would be inserted twice
    found = 0
    for at in tokens.places.get(text, ()):
        if (until is not None and work.reached(until)) or found >= MAX_PLACES:
            return
        first, last = at - number, at - number + len(pattern.old)
        if any(first < end + reach and start - reach < last for start, end in avoided):
            continue
        if first >= 0 and _matches(pattern, tokens, first):
            place = _rendered(pattern, tokens, first)
            if place is not None and accepts(place):
                found += 1
                yield place


def _matches(pattern: Pattern, tokens: TokenizedText, first: int) -> bool:
    there = tokens.texts[first : first + len(pattern.old)]
    work.spend(STEP_NS * len(there))
    return len(there) == len(pattern.old) and all(
        mine == other or (mine in LINE_ENDS and other in LINE_ENDS)
        for mine, other in zip(pattern.old, there, strict=True)
    )


def _rendered(pattern: Pattern, tokens: TokenizedText, first: int) -> MatchedPlace | None:
    """Returns the place with its new text; None if that equals the old one."""
    work.spend(len(pattern.new) * RENDERED_NS)
    last = first + len(pattern.old)
    pieces = [] if pattern.new else [_left(pattern, tokens, first)]
    for position, part in enumerate(pattern.new):
        pieces.append(_blank(pattern, tokens, first, position))
        pieces.append(tokens.texts[first + part] if isinstance(part, int) else _line_end(part, tokens))
    if pattern.new:
        pieces.append(_blank(pattern, tokens, first, len(pattern.new)))
    start = tokens.all[first - 1].end if first else 0
    end = tokens.all[last].start if last < len(tokens.all) else len(tokens.text)
    old, text = tokens.text[start:end], "".join(pieces)
    if text == old:
        return None
    lead, tail = common_ends(old, text)  # the characters that stay the same at both ends
    return MatchedPlace(pattern, first, start + lead, end - tail, text[lead : len(text) - tail])


def _blank(pattern: Pattern, tokens: TokenizedText, first: int, position: int) -> str:
    """Returns the blanks before a new token, or behind the last one: the place's own, where the change kept them."""
    blank, index = pattern.new_blanks[position], _kept_blank(pattern, position)
    begins = _begins_line(pattern, tokens, first, position)
    if index is None:
        return _as_indented(blank, _indents(pattern, tokens, first)) if begins else blank
    before, own = pattern.blanks[index], tokens.blank(first + index)
    if begins:
        return _as_indented(blank, [(before, own)])
    return own if blank == before else blank


def _kept_blank(pattern: Pattern, position: int) -> int | None:
    """Returns which of the old blanks stands before a new token; None for one that follows another than before."""
    if position == 0:
        return 0
    if position == len(pattern.new):
        same = _is_line_end(pattern, pattern.new[-1]) == (pattern.old[-1] in LINE_ENDS)
        return len(pattern.old) if same else None
    part, previous = pattern.new[position], pattern.new[position - 1]
    if not isinstance(part, int) or part == 0:
        return None
    begin_lines = _is_line_end(pattern, previous) and pattern.old[part - 1] in LINE_ENDS
    return part if begin_lines or previous == part - 1 else None


def _begins_line(pattern: Pattern, tokens: TokenizedText, first: int, position: int) -> bool:
    """Whether the blanks before a new token are the indentation of a line."""
    last = first + len(pattern.old)
    ends = [_is_line_end(pattern, part) for part in pattern.new[max(position - 1, 0) : position + 1]]
    if position == 0:
        ends.insert(0, first == 0 or tokens.all[first - 1].ends_line)
    if position == len(pattern.new):
        ends.append(last < len(tokens.all) and tokens.all[last].ends_line)
    return ends == [True, False]


def _is_line_end(pattern: Pattern, part: int | str) -> bool:
    return (pattern.old[part] if isinstance(part, int) else part) in LINE_ENDS


def _left(pattern: Pattern, tokens: TokenizedText, first: int) -> str:
    """Returns the blanks that are left of a deletion."""
    closing = pattern.new_blanks[-1]
    for index in (0, len(pattern.old)):
        if closing == pattern.blanks[index]:
            return tokens.blank(first + index)
    begins = _begins_line(pattern, tokens, first, 0)
    return _as_indented(closing, _indents(pattern, tokens, first)) if begins else closing


def _indents(pattern: Pattern, tokens: TokenizedText, first: int) -> Sequence[tuple[str, str]]:
    """Returns the indentation of the lines of a pattern's old tokens, each with that of the same line at a place."""
    begun = [index + 1 for index, text in enumerate(pattern.old) if text in LINE_ENDS]
    inner = [(pattern.blanks[index], tokens.blank(first + index)) for index in begun]
    return [(pattern.indent, tokens.indent(first)), *inner]


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
