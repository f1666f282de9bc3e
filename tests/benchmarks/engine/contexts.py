"""Real code for benchmarks: pieces of Python's standard library, equal on all machines with the same Python version."""

import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lacuna_model.core.errors import LacunaError

Encode = Callable[[str], list[int]]

# Large modules of plain code that every CPython ships.
MODULES = ("argparse.py", "tarfile.py", "inspect.py", "typing.py", "subprocess.py", "shutil.py", "difflib.py")


@dataclass(frozen=True, slots=True)
class Context:
    """A gap in real code: the text before and after it, and the line that was removed, which the user types."""

    before: str
    after: str
    line: str


def contexts(encode: Encode, num_tokens: int, *, after_share: float = 1 / 3) -> Iterator[Context]:
    """Yields disjoint pieces of about ``num_tokens`` tokens until the modules end; ``after_share`` of each is suffix.

    Raises LacunaError if a module cannot be read.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    for module in MODULES:
        try:
            lines = (folder / module).read_text(encoding="utf-8").splitlines(keepends=True)
        except OSError as error:
            raise LacunaError(f"the bench reads Python's own {module}, which is not there: {error.strerror}") from error
        # A token often holds a line's end and the next line's indentation, so lines are measured with both.
        sizes = [len(encode("\n" + line.rstrip("\n"))) for line in lines]
        start = 0
        while (end := _reach(sizes, start, num_tokens)) < len(lines):
            gap = _reach(sizes, start, round(num_tokens * (1 - after_share)))
            # The gap replaces a line of 40 characters or more if there is one, so that each run can type into it.
            gap = max(range(gap, end), key=lambda i: (len(lines[i].strip()) >= 40, -i))
            yield Context("".join(lines[start:gap]), "".join(lines[gap + 1 : end]), lines[gap].rstrip("\n"))
            start = end


def _reach(sizes: list[int], start: int, num_tokens: int) -> int:
    """Returns the line index at which ``num_tokens`` tokens from ``start`` on are complete."""
    total, index = 0, start
    while index < len(sizes) and total < num_tokens:
        total += sizes[index]
        index += 1
    return index
