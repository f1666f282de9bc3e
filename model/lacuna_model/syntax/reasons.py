"""Says why no valid fill was found, and what the user can do about it."""

from collections.abc import Sequence

from lacuna_model.core import work
from lacuna_model.core.constraint import FillSoFar
from lacuna_model.core.params import Region, with_fills
from lacuna_model.core.regions import DEFAULT_TOKENS, RULES
from lacuna_model.core.work import Clock, OverBudgetError
from lacuna_model.languages.language import Language
from lacuna_model.languages.parsing import UnparsableError
from lacuna_model.syntax.faults import tree_faults
from lacuna_model.syntax.stand_ins import fewest_errors

LATE = "the time limit came before the first line that is valid"


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
    why = LATE if late else _reason(text, regions, language, fills, lines_above)
    return f"no valid fill was found: {why}; the text stays as it was"


def _reason(
    text: bytes, regions: Sequence[Region], language: Language | None, fills: Sequence[FillSoFar], lines_above: int
) -> str:
    if rules := [name for name in RULES if any(getattr(region, name) for region in regions)]:
        return f"nothing that the model wrote keeps {' and '.join(rules)}"
    if language is not None and (line := _broken_line(text, regions, language)):
        return f"the syntax is broken already near line {lines_above + line}, so that little can be checked"
    full = [region.max_tokens for region, fill in zip(regions, fills, strict=True) if len(fill.tokens) >= fill.most]
    if full:
        advice = "a larger max_tokens" if max(full) < DEFAULT_TOKENS else "the first words of the fill, written by you,"
        return f"what the model began does not end within {max(full)} tokens ({advice} may help)"
    return "what the model wrote would break the syntax here"


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
