"""The command ``confidence``: how often the fills of a refactor are right, by the confidence that they have.

Parts of held-out Python files are taken out as a refactor leaves them out: values of keyword arguments, annotations,
conditions, docstrings. What the author wrote there is the right fill.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

import msgspec

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult
from lacuna_model.languages.parsing import UnparsableError
from lacuna_server.refactor.fill import FileFill, fill_files
from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.refactoring import by_syntax, places

if TYPE_CHECKING:
    from rich.table import Table

# What is taken out, by its name: a query whose capture ``@place`` is filled again.
KINDS = {
    "keyword argument": "(call arguments: (argument_list (keyword_argument value: (_) @place)))",
    "annotation": "[(typed_parameter type: (type) @place) (function_definition return_type: (type) @place)]",
    "condition": "(if_statement condition: (_) @place)",
    "docstring": "(function_definition body: (block . (expression_statement (string (string_content) @place))))",
}
PLACES_PER_FILE = 4
LONGEST_FILE = 8_000  # characters
# The lower bounds of the rows of the table, and the values of --min-confidence that it compares.
BOUNDS = (0.0, 1e-6, 0.0001, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9)


class Judged(msgspec.Struct, frozen=True):
    """One fill: the kind of its place, its confidence, and whether it is word for word the author's text."""

    kind: str
    confidence: float
    right: bool
    text: str
    fill: str


class Calibrated(msgspec.Struct, frozen=True):
    """The fills whose confidence is at least ``at_least``, and those of them that are below the next row's bound.

    ``right`` and ``right_here`` count the fills that are word for word right.
    """

    at_least: float
    fills: int
    right: int
    fills_here: int
    right_here: int


def judge(
    texts: Sequence[str],
    kind: str,
    answer: Callable[[InfillRequest], InfillResult],
    num_places: int,
    seed: int,
    advance: Callable[[int], None] = lambda count: None,
) -> Iterator[Judged]:
    """Takes out up to ``num_places`` parts of one kind, up to ``PLACES_PER_FILE`` a file, and judges their fills.

    Fills that the constraint refuses have no confidence and are not counted. Raises RequestError if no text has such a
    part.
    """
    from lacuna_model.languages.registry import require_language

    python, random = require_language("python"), Random(seed)
    refactoring = by_syntax(KINDS[kind], "<<fill>>", python.name)
    order = [text for text in texts if len(text) <= LONGEST_FILE]
    random.shuffle(order)
    left = num_places
    for number, text in enumerate(order):
        if left == 0:
            return
        source = Source(f"file_{number}.py", text, python)
        try:
            found = places(refactoring, [source])[0]
        except UnparsableError:
            continue
        for _, rewrites in found:
            count = min(PLACES_PER_FILE, left, len(rewrites))
            chosen = sorted(random.sample(list(rewrites), count), key=lambda rewrite: rewrite.start)
            fill = FileFill(source, chosen)
            fill_files([fill], answer, advance)
            left -= count
            for edit in fill.edits().edits:
                if edit.status != "failed" and edit.confidence is not None:
                    wanted = source.data[edit.start : edit.end].decode()
                    yield Judged(kind, edit.confidence, edit.new_text.strip() == wanted.strip(), wanted, edit.new_text)
    if left == num_places:
        raise RequestError(f"no file has a place of the kind {kind}")


def calibrated(found: Sequence[Judged]) -> list[Calibrated]:
    """Returns a row for every bound of ``BOUNDS``."""
    rows = []
    for low, high in zip(BOUNDS, [*BOUNDS[1:], 2.0], strict=True):
        kept = [one for one in found if one.confidence >= low]
        here = [one for one in kept if one.confidence < high]
        right, right_here = (sum(one.right for one in fills) for fills in (kept, here))
        rows.append(Calibrated(low, len(kept), right, len(here), right_here))
    return rows


def table(kind: str, rows: Sequence[Calibrated]) -> "Table":
    """Returns the rows of one kind, or of all, as a table."""
    from rich.table import Table

    grid = Table(title=f"Fills of refactors: {kind}")
    for heading in ("confidence from", "fills", "of them right", "up to the next row", "of them right"):
        grid.add_column(heading, justify="right")
    for row in rows:
        share, share_here = row.right / max(row.fills, 1), row.right_here / max(row.fills_here, 1)
        grid.add_row(f"{row.at_least:g}", str(row.fills), f"{share:.0%}", str(row.fills_here), f"{share_here:.0%}")
    return grid
