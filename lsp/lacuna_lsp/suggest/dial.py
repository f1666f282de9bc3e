"""How much of a suggestion is shown unasked: the dial's three places, and the part that is likely enough for one."""

from collections.abc import Sequence
from typing import Literal

Dial = Literal["quiet", "normal", "bold"]

# From which probability on a part of a suggestion is shown.
AT_LEAST: dict[Dial, float] = {"quiet": 0.6, "normal": 0.4, "bold": 0.25}
# The end of a line is cut off where so many characters are left.
LEAST_CHARACTERS = 4


def sure_part(text: str, lines: Sequence[float], words: Sequence[tuple[int, float]], at_least: float) -> str:
    """The longest part of a text that is right with a probability of ``at_least``: whole lines, or words of the first.

    ``lines`` and ``words`` are those of :class:`lacuna_model.core.params.InfillResult`.
    """
    sure = sum(probability >= at_least for probability in lines)
    if sure == len(lines):
        return text
    if sure:
        return "\n".join(text.split("\n")[:sure])
    ends = [end for end, probability in words if probability >= at_least]
    part = text[: max(ends, default=0)]
    return part if len(part.strip()) >= LEAST_CHARACTERS else ""
