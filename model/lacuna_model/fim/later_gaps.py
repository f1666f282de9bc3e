"""What the prompt of a gap holds in place of the later gaps.

A small model writes what it sees: behind ``return`` without a value it leaves its own gap empty, too. So the line of a
later gap is left out if it ends with the gap, or with a mark behind it, and so are the headers of blocks that would
hold nothing. Where a gap is whole lines nothing is left out, since its header helps then.
"""

from lacuna_model.core.definitions import column
from lacuna_model.text.lines import first_written

# Blanks, and the marks that end a statement or an entry.
_ENDS = " \t\r;,"


def joined(before: str, after: str) -> str:
    """The texts around a later gap without it; the first line of ``before`` is that of the prompt's own gap."""
    above, newline, head = before.rpartition("\n")
    rest, _, below = after.partition("\n")
    if rest.strip(_ENDS) or not head or not newline:
        return before + after
    while True:
        top, newline, header = above.rpartition("\n")
        first = first_written(below)
        if newline and header.rstrip().endswith(":") and column(first) <= column(header):
            above = top
        elif newline and header.rstrip().endswith("{") and first.strip() == "}":
            above, below = top, below.partition(first)[2].removeprefix("\n")
        else:
            return f"{above}\n{below}"
