"""How much of a suggestion is shown unasked: the places of the dial, and the part that is likely enough for one."""

from collections.abc import Sequence
from itertools import accumulate

from lacuna_server.wire.config import Dial

# From which probability on a part of a suggestion is shown.
AT_LEAST: dict[Dial, float] = {"quiet": 0.8, "normal": 0.6, "bold": 0.5}
# An end of a line is cut off only where so many characters are left.
LEAST_CHARACTERS = 4


def sure_part(
    text: str, lines: Sequence[float], words: Sequence[tuple[int, float]], at_least: float, typed: int = 0
) -> str:
    """The longest part of a text that is right with a probability of ``at_least``: whole lines, or words of the first.

    The first ``typed`` characters are known to be right, which makes what follows likelier. ``lines`` and ``words`` are
    those of :class:`lacuna_model.core.params.InfillResult`; where there are none, the whole text is sure.
    """
    ends = [size - 1 for size in accumulate(len(line) + 1 for line in text.split("\n")[: len(lines)])]
    known = [sure for end, sure in words if end <= typed]
    known += [sure for end, sure in zip(ends, lines, strict=False) if end < typed]
    wanted = at_least * min(known, default=1.0)
    sure = sum(one >= wanted for one in lines)
    if sure == len(lines):
        return text
    if sure:
        return text[: ends[sure - 1]] if sure <= len(ends) else text
    part = text[: max((end for end, one in words if one >= wanted), default=0)]
    return part if len(part[typed:].strip()) >= LEAST_CHARACTERS else ""
