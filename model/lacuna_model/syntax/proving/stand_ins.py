"""Stand-ins: short texts for gaps that are not filled yet, so that the text around the others is valid.

Each gap takes the guess that leaves the fewest errors in the whole text beside what the others hold. Where errors stay,
the grammar is asked for one gap after the other.
"""

from collections.abc import Sequence
from itertools import islice

from lacuna_model.core import regions as region_groups
from lacuna_model.core import work
from lacuna_model.core.constraint import ConstraintStats
from lacuna_model.core.params import Region
from lacuna_model.languages.language import Language
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.lr.clock import Clock
from lacuna_model.syntax.proving.judge import Judge
from lacuna_model.syntax.text.balance import Balance
from lacuna_model.syntax.text.minimal_completions import Closer
from lacuna_model.syntax.text.nested import completed, nested_in

MOST_GUESSES = 24  # for a gap
MOST_ROUNDS = 2
MOST_SECONDS = 0.3  # of work


def stand_ins(text: bytes, regions: Sequence[Region], language: Language, clock: Clock) -> list[str]:
    """Return a text for each region so that the whole is valid, or has few errors; "" for a single region."""
    return [""] if len(regions) == 1 else _fewest_errors(text, regions, language, clock)[0]


def completions(text: bytes, places: Sequence[int], language: Language, clock: Clock) -> list[str] | None:
    """Return texts to put at some places so that the whole text has no error; None where none are found."""
    found, left = _fewest_errors(text, [Region(place, place) for place in places], language, clock)
    return None if left else found


def _fewest_errors(text: bytes, regions: Sequence[Region], language: Language, clock: Clock) -> tuple[list[str], int]:
    """Texts for the regions, and the number of errors that they leave."""
    guesses = _guesses(text, regions, language)
    found = [one[0] for one in guesses]
    document = Document(text, [(region.start, region.end) for region in regions], language, clock)

    def errors(fills: Sequence[str]) -> int:
        return len(document.check([fill.encode() for fill in fills]).faults)

    left, until = errors(found), work.mark(MOST_SECONDS)
    for gap in [*range(len(regions))] * MOST_ROUNDS:
        for guess in guesses[gap]:
            if not left or work.reached(until) or clock.over:
                break
            other = [*found[:gap], guess, *found[gap + 1 :]]
            if (number := errors(other)) < left:
                found, left = other, number
    for gap in range(len(regions)):
        if not left:
            break
        filled, place = around(text, regions, found, gap)
        closing = Judge(filled, place, language, clock, ConstraintStats(), in_line=False).stand_in()
        if closing is not None:
            other = [*found[:gap], closing.decode(errors="ignore"), *found[gap + 1 :]]
            if (number := errors(other)) < left:
                found, left = other, number
    return found, left


def around(text: bytes, regions: Sequence[Region], fills: Sequence[str], gap: int) -> tuple[bytes, tuple[int, int]]:
    """Return the text with all gaps but one filled, and the byte range of that one."""
    others = [one for one in range(len(regions)) if one != gap]
    filled = region_groups.splice(text, [regions[one] for one in others], [fills[one] for one in others])
    grown = sum(len(fills[one].encode()) - (regions[one].end - regions[one].start) for one in range(gap))
    return filled, (regions[gap].start + grown, regions[gap].end + grown)


def _guesses(text: bytes, regions: Sequence[Region], language: Language) -> list[list[str]]:
    """The likeliest texts of each gap; at least one."""
    balance = Balance(text, [(region.start, region.end) for region in regions], language.lexicon)
    found = []
    for gap, region in enumerate(regions):
        nested = nested_in(language, text[: region.start], text[region.end :])
        texts = completed(Closer(balance.sides(gap)).completions, nested)(b"")
        found.append([one.decode(errors="ignore") for one in islice(texts, MOST_GUESSES)] or [""])
    return found
