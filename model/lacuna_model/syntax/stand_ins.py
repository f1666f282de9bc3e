"""What stands in for gaps, markers and conflicts, so that the rest of a file can be read; why no fill was found."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, islice

from lacuna_model.core import regions as region_groups
from lacuna_model.core import work
from lacuna_model.core.constraint import FillSoFar
from lacuna_model.core.params import Region, with_fills
from lacuna_model.core.regions import DEFAULT_TOKENS, RULES, marked, shifted
from lacuna_model.core.work import Clock, OverBudgetError
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.completions import completions as completions_of
from lacuna_model.syntax.document import Document, parses
from lacuna_model.syntax.faults import tree_faults
from lacuna_model.syntax.judge import Judge
from lacuna_model.syntax.sides import sides_of
from lacuna_model.text.lines import splice

NAME = "__fill__"


def named(text: bytes, regions: Sequence[Region]) -> bytes:
    """Return a text with a name in place of each marker that is apart from the ``regions`` (ordered, byte offsets)."""
    markers = marked(text)
    found = [one for one in markers if all(other.end <= one.start or one.end <= other.start for other in regions)]
    return with_fills(text, found, [NAME] * len(found))


CONFLICT = re.compile(
    rb"^<{7}(?: [^\n]*)?\n(?P<ours>(?:(?![<|=>]{7})[^\n]*\n)*)(?:\|{7}[^\n]*\n(?:(?![<|=>]{7})[^\n]*\n)*)?"
    rb"={7}\r?\n(?P<theirs>(?:(?![<|=>]{7})[^\n]*\n)*)>{7}(?: [^\n]*)?(?:\n|\Z)",
    re.MULTILINE,
)


def one_side(text: bytes, regions: Sequence[Region]) -> tuple[bytes, Sequence[Region]]:
    """Return a text with one side of each conflict, and the ``regions`` (ordered, byte offsets) in it.

    The side that holds regions stays, else the first one. A conflict stays whole if a region holds some of its marks,
    or both of its sides hold regions.
    """
    removed = list[tuple[int, int]]()
    for match in CONFLICT.finditer(text):
        within = [one for one in regions if one.start < match.end() and match.start() < max(one.end, one.start + 1)]
        sides = [match.span("ours"), match.span("theirs")]
        holding = (side for side in sides if all(side[0] <= one.start <= one.end < side[1] for one in within))
        kept = next(holding, None)
        if kept is not None:
            removed += [(match.start(), kept[0]), (kept[1], match.end())]
    moved = [shifted(one, -sum(end - start for start, end in removed if end <= one.start)) for one in regions]
    return splice(text, [(*part, b"") for part in removed]), moved


MAX_GUESSES = 24  # for a gap
MAX_ROUNDS = 2
MAX_SECONDS = 0.3  # of work
MAX_CHOSEN = 12  # times that other texts are looked for in the gaps of a request


def stand_ins(text: bytes, regions: Sequence[Region], language: Language, deadline: float | None = None) -> list[str]:
    """Return a text for each region, as long as they are not filled, so that the whole is valid, or has few errors.

    All are "" for a single region, and where they take too long to find. ``deadline`` is a ``time.monotonic`` instant.
    """
    with suppress(OverBudgetError), work.bounded():
        if len(regions) > 1:
            return fewest_errors(named(text, regions), regions, language, Clock(deadline))[0]
    return [""] * len(regions)


def fewest_errors(text: bytes, regions: Sequence[Region], language: Language, clock: Clock) -> tuple[list[str], int]:
    """Return texts for the regions, and the number of errors that they leave."""
    found = [""] * len(regions)

    def guesses(gap: int) -> Iterator[str]:
        filled, (start, end) = _around(text, regions, found, gap)
        texts = completions_of(sides_of(filled[:start], filled[end:], language.lexicon))(b"")
        return (one.decode(errors="ignore") for one in islice(texts, MAX_GUESSES))

    for gap in range(len(regions)):
        found[gap] = next(guesses(gap), "")
    document = Document(text, [(region.start, region.end) for region in regions], language)

    def errors(fills: Sequence[str]) -> int:
        return len(document.check([fill.encode() for fill in fills]))

    left, until = errors(found), work.mark(MAX_SECONDS)

    def put(gap: int, one: str) -> None:
        """Let a gap hold a text if that leaves fewer errors."""
        nonlocal found, left
        other = [*found[:gap], one, *found[gap + 1 :]]
        if (number := errors(other)) < left:
            found, left = other, number

    for gap in [*range(len(regions))] * MAX_ROUNDS:
        for guess in guesses(gap):
            if not left or work.reached(until) or clock.over:
                break
            put(gap, guess)
    for gap in range(len(regions)):
        if left:
            closing = Judge(*_around(text, regions, found, gap), language, clock, in_line=False).stand_in()
            if closing is not None:
                put(gap, closing.decode(errors="ignore"))
    return found, left


class Others:
    """What the gaps of a text hold while others are looked at: ``fills``, each a gap's fill or a stand-in for it.

    ``written`` is what was written in each gap as it was seen last.
    """

    def __init__(self, text: bytes, regions: Sequence[Region], language: Language | None, clock: Clock) -> None:
        self._text, self._regions, self._language, self._clock = text, regions, language, clock
        self.written = [b""] * len(regions)
        self._chosen: set[tuple[int, bytes, bool, tuple[bytes, ...]]] = set()
        self._are_chosen = False

    @cached_property
    def fills(self) -> list[str]:
        """The text of each gap; looked for when it is first needed."""
        return list(self._neutral[0])

    @cached_property
    def _neutral(self) -> tuple[list[str], int]:
        """The first stand-ins, which tell of the text whatever its gaps hold, and how many errors they leave."""
        if self._language is None or len(self._regions) == 1:
            return [""] * len(self._regions), 0
        return fewest_errors(self._text, self._regions, self._language, self._clock)

    @property
    def leave_errors(self) -> bool:
        """Whether no texts were found for the open gaps with which the whole has no error."""
        return not self._are_chosen and self._neutral[1] > 0

    @cached_property
    def are_sound(self) -> bool:
        """Whether several gaps have stand-ins with which the whole text has no error: then no fill may leave one."""
        if self._language is None or len(self._regions) == 1:
            return False
        return parses(with_fills(self._text, self._regions, self._neutral[0]), self._language)

    def are_valid_together(self, fills: Sequence[str], *, strict: bool) -> bool:
        """Whether several ``fills`` add no error to the text with stand-ins in their place.

        Each was judged beside the others, whose errors look like those of the text. Errors may stay only apart from the
        gaps, and if texts without any are known or with ``strict`` not even there.
        """
        if self._language is None or len(self._regions) == 1:
            return True
        neutral = [one.encode() for one in self._neutral[0]]
        text, ends = _begun(self._text, self._regions, neutral)
        spans = [(end - len(one), end) for end, one in zip(ends, neutral, strict=True)]
        is_strict = strict or self.are_sound or self._are_chosen
        document = Document(text, spans, self._language, strict=is_strict)
        return not document.check_fresh([one.encode() for one in fills])

    def around(self, gap: int) -> tuple[bytes, tuple[int, int]]:
        """Return the text with all gaps but one filled, and the byte range of that one."""
        return _around(self._text, self._regions, self.fills, gap)

    def choose_again(self, gap: int, text: bytes, ended: Sequence[bool], *, ends: bool) -> bool:
        """Find other fills for the gaps not ``ended``, beside one that begins with a text, or ``ends`` with it.

        Returns whether it found some.
        """
        others = [one for one in range(len(ended)) if one != gap and not ended[one]]
        key = gap, text, ends, tuple(self.written)
        if not others or self._language is None or key in self._chosen:
            return False
        if len(self._chosen) >= MAX_CHOSEN or self._clock.over:
            return False
        self._chosen.add(key)
        known = [self.fills[one].encode() if ended[one] else self.written[one] for one in range(len(ended))]
        known[gap] = text
        whole, places = _begun(self._text, self._regions, known)
        open_gaps = others if ends else sorted([*others, gap])
        places_left = [Region(places[one], places[one]) for one in open_gaps]
        try:
            found, left = fewest_errors(whole, places_left, self._language, self._clock)
        except UnparsableError:  # what is written is to blame, since the text itself was parsed before
            return False
        if left:
            return False
        for one, closing in zip(open_gaps, found, strict=True):
            if one != gap:
                self.fills[one] = known[one].decode(errors="ignore") + closing
        self._are_chosen = True
        return True


def _around(text: bytes, regions: Sequence[Region], fills: Sequence[str], gap: int) -> tuple[bytes, tuple[int, int]]:
    """The text with all gaps but one filled, and the byte range of that one."""
    around, (own,) = region_groups.text_for(text, regions, fills, range(gap, gap + 1), fills[gap + 1 :])
    return around, (own.start, own.end)


def _begun(text: bytes, regions: Sequence[Region], known: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """The text with the beginnings of all fills in their regions, and the ends of these."""
    edits = [(region.start, region.end, one) for region, one in zip(regions, known, strict=True)]
    grown = accumulate(len(one) - (end - start) for start, end, one in edits)
    return splice(text, edits), [end + by for (_, end, _), by in zip(edits, grown, strict=True)]


def no_fill(
    text: bytes,
    regions: Sequence[Region],
    language: Language | None,
    fills: Sequence[FillSoFar],
    *,
    late: bool,
    lines_above: int = 0,
) -> str:
    """Return a sentence for the user; ``late`` if a deadline ran out. The text has ``lines_above`` it in its file."""
    full = [region.max_tokens for region, fill in zip(regions, fills, strict=True) if len(fill.tokens) >= fill.most]
    if late:
        why = "the time limit came before the first line that is valid"
    elif rules := [name for name in RULES if any(getattr(region, name) for region in regions)]:
        why = f"nothing that the model wrote keeps {' and '.join(rules)}"
    elif language is not None and (line := _broken_line(text, regions, language)):
        why = f"the syntax is broken already near line {lines_above + line}, so that little can be checked"
    elif full:
        advice = "a larger max_tokens" if max(full) < DEFAULT_TOKENS else "the first words of the fill, written by you,"
        why = f"what the model began does not end within {max(full)} tokens ({advice} may help)"
    else:
        why = "what the model wrote would break the syntax here"
    return f"no valid fill was found: {why}; the text stays as it was"


def _broken_line(text: bytes, regions: Sequence[Region], language: Language) -> int:
    """The first line, counted from 1, that has an error whatever the gaps hold; 0 for none, or if that is not known."""
    try:
        with work.bounded():
            found, _ = fewest_errors(text, regions, language, Clock())
            faults = tree_faults(language.parser().parse(with_fills(text, regions, found)))
    except (OverBudgetError, UnparsableError):
        return 0
    if not faults:
        return 0
    at = min(faults, key=lambda fault: fault.start).start
    for region, one in zip(regions, found, strict=True):
        if at > region.start:
            at -= len(one.encode()) - (region.end - region.start)
    return text.count(b"\n", 0, max(at, 0)) + 1
