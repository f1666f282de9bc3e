"""Measures suggestions as a user gets them: the rest of a line being typed, and the model's confidence in it."""

import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import msgspec
import tree_sitter
from rich.table import Table
from tests.benchmarks.held_out.cases import Case, code_lines, long_enough
from tests.benchmarks.tasks.runner import Filler

from lacuna_model.core.params import FillGaps, InfillRequest, Region
from lacuna_model.text.brackets import CLOSER_OF
from lacuna_model.text.lines import indentation
from training.accepted.languages import parser_of
from training.stored.documents import Document

# The kind of a cursor: the file continues below its line, or ends with the line, or a closing bracket follows the
# wanted text, as editors insert it with the opening one.
Where = Literal["the file goes on", "the file ends", "in brackets"]

MAX_TOKENS = 96
AT_THE_START = 0.35  # share of cursors at the start of a line; the others are anywhere in it
AT_THE_END = 0.25  # share of files that end with the typed line
IN_BRACKETS = 0.25  # share of cursors in brackets, if the line has any
MAX_TO_COME = 6  # lines below the cursor's that are not typed yet
BEHIND_AN_OPENER = 0.4  # share of those directly after the opening bracket
THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """The suggestion at one cursor: its fill, whether it equals the true text, and its confidence.

    ``refused`` means that no fill was valid; ``ms`` is the time in milliseconds.
    """

    language: str
    package: str
    where: Where = "the file goes on"
    refused: bool = False
    fill: str
    truth: str
    exact: bool
    confidence: float
    ms: float

    @property
    def suggested(self) -> bool:
        """Whether there is a text to show."""
        return not self.refused and bool(self.fill.strip())


class Shown(msgspec.Struct, frozen=True):
    """The effect of showing only suggestions from a confidence ``threshold`` on.

    ``shown`` is the share of suggestions that are shown, ``right`` the share of exact ones among them, and ``kept`` the
    share of all exact suggestions that are shown.
    """

    threshold: float
    shown: float
    right: float
    kept: float


def typed_cases(documents: Sequence[Document], num_cases: int, seed: int) -> Iterator[Case]:
    """Yields ``num_cases`` cursors in lines of code, languages in turn; wanted is the rest of the line or brackets.

    The same arguments give the same cases. Raises LacunaError if no document is long enough.
    """
    by_language: dict[str, list[Document]] = {}
    for document in long_enough(documents):
        by_language.setdefault(document.language, []).append(document)
    languages, rng = sorted(by_language), Random(seed)
    for number in range(num_cases):
        yield _cut(rng.choice(by_language[languages[number % len(languages)]]), rng)


def _cut(document: Document, rng: Random) -> Case:
    lines = document.text.split("\n")
    row = rng.choice(code_lines(document))
    line = lines[row].rstrip()
    begin, end = _wanted(line, _brackets(document, row) if rng.random() < IN_BRACKETS else (), rng)
    before = "\n".join([*lines[:row], line[:begin]])
    ends = end == len(line) and rng.random() < AT_THE_END
    after = line[end:] + "\n" + ("" if ends else "\n".join(lines[row + 1 + rng.randint(0, MAX_TO_COME) :]))
    at = len(before.encode())
    region = Region(at, at, MAX_TOKENS, max_lines=1, single_line=True)
    request = InfillRequest(
        text=before + after,
        regions=(region,),
        path=document.path,
        language=document.language,
        task=FillGaps(open=True),
    )
    return Case("line", document.package, document.path, request, (line[begin:end],))


def _wanted(line: str, brackets: Sequence[tuple[int, int]], rng: Random) -> tuple[int, int]:
    """Returns the wanted columns of a line: to the end of some brackets, if there are any, or to its end."""
    if brackets:
        begin, end = rng.choice(brackets)
        return (begin if rng.random() < BEHIND_AN_OPENER else rng.randrange(begin, end)), end
    indented = len(indentation(line))
    return (indented if rng.random() < AT_THE_START else rng.randrange(indented, len(line))), len(line)


def _brackets(document: Document, row: int) -> list[tuple[int, int]]:
    """Returns the columns between which the brackets of a line enclose text, except in strings and comments."""
    line = document.text.split("\n")[row].encode()
    opened: list[tuple[str, int]] = []
    found = []
    for leaf in _leaves(parser_of(document.language).parse(document.text.encode()).root_node, row):
        column = leaf.start_point.column
        if leaf.type in CLOSER_OF:
            opened.append((CLOSER_OF[leaf.type], column + 1))
        elif opened and leaf.type == opened[-1][0] and line[opened[-1][1] : column].strip():
            found.append((len(line[: opened[-1][1]].decode()), len(line[:column].decode())))
        if opened and leaf.type == opened[-1][0]:
            opened.pop()
    return found


def _leaves(node: tree_sitter.Node, row: int) -> Iterator[tree_sitter.Node]:
    """Yields the leaves of a tree that begin in a row."""
    if node.start_point.row <= row <= node.end_point.row:
        if not node.child_count and node.start_point.row == row:
            yield node
        for child in node.children:
            yield from _leaves(child, row)


def suggest(case: Case, filler: Filler) -> Typed:
    """Returns the suggestion for a case."""
    began = time.perf_counter()
    result = filler.fill(case.request)
    ms = (time.perf_counter() - began) * 1e3
    (fill,), (truth,) = result.fills or ("",), case.truths
    behind = case.request.text.encode()[case.request.regions[0].end :]
    where: Where = "in brackets" if behind[:1].strip() else "the file goes on" if behind.strip() else "the file ends"
    return Typed(
        language=case.request.language,
        package=case.package,
        where=where,
        refused=result.status == "no_valid_fill",
        fill=fill,
        truth=truth,
        exact=fill.rstrip() == truth,
        confidence=result.confidence[0][0] if result.confidence else 0.0,
        ms=round(ms, 1),
    )


def shown(suggestions: Sequence[Typed], thresholds: Sequence[float] = THRESHOLDS) -> list[Shown]:
    """Returns the effect of each threshold; at least one suggestion must be exact."""
    exact = sum(one.exact for one in suggestions)
    found = []
    for threshold in thresholds:
        sure = [one for one in suggestions if one.confidence >= threshold]
        right = sum(one.exact for one in sure)
        found.append(Shown(threshold, len(sure) / len(suggestions), right / max(len(sure), 1), right / exact))
    return found


def table(found: Sequence[Shown]) -> Table:
    """Returns a table with one row per threshold."""
    table = Table(title="suggestions shown from a confidence on")
    for column in ("confidence", "shown", "exact of those", "of all exact ones"):
        table.add_column(column, justify="right")
    for one in found:
        table.add_row(f"{one.threshold:.2f}", f"{one.shown:.0%}", f"{one.right:.0%}", f"{one.kept:.0%}")
    return table
