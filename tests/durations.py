"""What the tests take: ``python -m tests.durations [FILE]`` writes the tables at the end of ``tests/README.md``.

``FILE`` is what pytest's ``--junitxml`` has written, by default in the last ``make test``.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parent
FILE = TESTS.parent / ".venv" / "tests.xml"
HEADING = "## Durations\n\n"
LONGEST = 25


def cases(run: Path) -> list[tuple[str, float]]:
    """The file of each test, and its seconds with its fixtures. Raises OSError, and ParseError for what is no XML."""
    found = ElementTree.parse(run).iter("testcase")
    return [(_file(case.attrib["classname"]), float(case.attrib["time"])) for case in found]


def _file(classname: str) -> str:
    """The file of ``tests.model.test_engine.TestOpen``: ``tests/model/test_engine.py``."""
    words = classname.split(".")
    last = next(index for index, word in enumerate(words) if word.startswith("test_"))
    return "/".join(words[: last + 1]) + ".py"


def table(what: str, found: Sequence[tuple[str, float]]) -> str:
    """A table in Markdown of these places and the seconds of their tests, the slowest first."""
    rows = defaultdict[str, list[float]](list)
    for name, seconds in found:
        rows[name].append(seconds)
    slowest = sorted(rows.items(), key=lambda row: -sum(row[1]))[:LONGEST]
    lines = [f"| `{name}` | {len(seconds):,} | {sum(seconds):,.0f} |\n" for name, seconds in slowest]
    return f"| {what} | tests | s |\n|---|---|---|\n{''.join(lines)}"


def write(page: Path, run: Path) -> None:
    """Put the tables of a run under the heading of a page, in place of what is there."""
    files = cases(run)
    folders = [(name.rpartition("/")[0], seconds) for name, seconds in files]
    total = f"{len(files):,} tests, {sum(one for _, one in files):,.0f} s in all processes."
    tables = f"{table('Folder', folders)}\n{table('File', files)}"
    before = page.read_text("utf-8").partition(HEADING)[0]
    page.write_text(f"{before}{HEADING}{total} The slowest folders and files:\n\n{tables}", "utf-8")


if __name__ == "__main__":
    write(TESTS / "README.md", Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
