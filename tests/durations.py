"""What the tests take: ``python -m tests.durations [FILE]`` writes the tables at the end of ``tests/README.md``.

``FILE`` is what pytest's ``--junitxml`` has written, by default in the last ``make test``.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parent
FILE = TESTS.parent / ".venv" / "tests.xml"
HEADING = "## Durations\n\n"
LONGEST = 25

Seconds = Mapping[str, Sequence[float]]


def by_file(run: Path) -> Seconds:
    """The seconds of each test, with its fixtures, by its file. Raises OSError, and ParseError for what is no XML."""
    found = defaultdict(list)
    for case in ElementTree.parse(run).iter("testcase"):
        found[_file(case.attrib["classname"])].append(float(case.attrib["time"]))
    return found


def _file(classname: str) -> str:
    """The file of ``tests.model.test_engine.TestOpen``: ``tests/model/test_engine.py``."""
    words = classname.split(".")
    last = next(index for index, word in enumerate(words) if word.startswith("test_"))
    return "/".join(words[: last + 1]) + ".py"


def by_folder(files: Seconds) -> Seconds:
    """The same by the folders of the files."""
    found = defaultdict(list)
    for name, seconds in files.items():
        found[name.rpartition("/")[0]] += seconds
    return found


def table(what: str, rows: Seconds) -> str:
    """A table in Markdown, the slowest first."""
    slowest = sorted(rows.items(), key=lambda row: -sum(row[1]))[:LONGEST]
    lines = [f"| `{name}` | {len(seconds):,} | {sum(seconds):,.0f} |\n" for name, seconds in slowest]
    return f"| {what} | tests | s |\n|---|---|---|\n{''.join(lines)}"


def write(page: Path, run: Path) -> None:
    """Put the tables of a run under the heading of a page, in place of what is there."""
    files = by_file(run)
    every = [one for seconds in files.values() for one in seconds]
    total = f"{len(every):,} tests, {sum(every):,.0f} s in all processes. The slowest folders and files:"
    tables = "\n".join((table("Folder", by_folder(files)), table("File", files)))
    page.write_text(f"{page.read_text('utf-8').partition(HEADING)[0]}{HEADING}{total}\n\n{tables}", "utf-8")


if __name__ == "__main__":
    write(TESTS / "README.md", Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
