"""The command ``evaluate --instructions``: edits by instruction, how many are right, and what passes they take."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.table import Table
from tests.benchmarks.instructions.harm import harm
from tests.benchmarks.instructions.judging import judged, region_of
from tests.benchmarks.instructions.tasks import Task
from tests.benchmarks.tasks.records import Records
from tests.benchmarks.tasks.sandbox import Sandbox

from lacuna_model.core.params import DecodeOptions, EditLines, InfillRequest, InfillResult
from lacuna_model.text import diff

# A task that takes longer counts as wrong.
MAX_MS = 300_000
# An edit is small where less than this share of its lines changes.
SMALL = 0.2


class Settings(msgspec.Struct, frozen=True):
    """What the records of an evaluation belong to."""

    model: str
    tasks: int


class Edited(msgspec.Struct, frozen=True):
    """The result of one task: ``why`` it is wrong ("" where it is right), passes, tokens, milliseconds and share.

    ``group`` is the language, or prose or configuration. ``harm`` is what the edit has destroyed ("" where nothing).
    ``text`` is what the model wrote, also where it was refused. ``changed`` is the share (0..1) of the old lines that
    were deleted or replaced, or had others inserted beside them.
    """

    task: str
    group: str
    why: str
    text: str
    nfe: int
    tokens: int
    ms: float
    changed: float
    harm: str = ""


class Row(msgspec.Struct, frozen=True):
    """The figures of a group of tasks: how many are right and how many do harm, passes and tokens; times in ms.

    Small edits are counted apart, too.
    """

    group: str
    tasks: int
    right: int
    harmful: int
    nfe: int
    tokens: int
    small: int
    small_nfe: int
    small_tokens: int
    ms_p50: float
    ms_p95: float


def changed(old: str, new: str) -> float:
    """The share of lines that are not the same in both texts."""
    before, after = old.splitlines(), new.splitlines()
    return 1 - len(diff.pairs(before, after)) / max(len(before), len(after), 1)


def measure(
    tasks: Sequence[Task], fill: Callable[[InfillRequest], InfillResult], sandbox: Sandbox, records: Records[Edited]
) -> Iterator[Edited]:
    """Edit task after task, and judge the results; those in the records are not run again."""
    known = {one.task: one for one in records.found}
    for task in tasks:
        if task.name in known:
            yield known[task.name]
            continue
        text = task.text
        start, end = task.span
        options = DecodeOptions(deadline_ms=MAX_MS)
        request = InfillRequest(text, (region_of(task),), EditLines(task.instruction), path=task.file, options=options)
        result = fill(request)
        new = request.filled(result.fills)
        done = result.status == "ok"
        harmed = harm(task, result.fills[0]) if done and new != text else ""
        why = (harmed or judged(task, new, result.fills[0], sandbox)) if done else f"refused: {result.message}"
        share = changed(text.encode()[start:end].decode(), result.fills[0])
        stats = result.stats
        one = Edited(
            task.name,
            task.group,
            why,
            (result.refused or result.fills)[0],
            stats.nfe,
            stats.tokens,
            round(stats.ms, 1),
            round(share, 3),
            harmed,
        )
        records.add(one)
        yield one


def rows(found: Sequence[Edited]) -> list[Row]:
    """The figures of each group and of all tasks."""
    groups = {name: [one for one in found if one.group == name] for name in dict.fromkeys(o.group for o in found)}
    return [_row(name, group) for name, group in (groups | {"all": list(found)}).items()]


def _row(name: str, group: Sequence[Edited]) -> Row:
    small = [one for one in group if one.changed < SMALL]
    times = [one.ms for one in group]
    return Row(
        name,
        len(group),
        sum(not one.why for one in group),
        sum(bool(one.harm) for one in group),
        sum(one.nfe for one in group),
        sum(one.tokens for one in group),
        len(small),
        sum(one.nfe for one in small),
        sum(one.tokens for one in small),
        float(np.percentile(times, 50)),
        float(np.percentile(times, 95)),
    )


def table(figures: Sequence[Row]) -> Table:
    """The figures as a table."""
    shown = Table(box=None, pad_edge=False)
    for heading in (
        "GROUP",
        "RIGHT",
        "HARMFUL",
        "PASSES",
        "TOKENS",
        "SMALL EDITS",
        "PASSES",
        "TOKENS",
        "MS P50",
        "P95",
    ):
        shown.add_column(heading)
    for row in figures:
        right = f"{row.right} of {row.tasks}"
        counts = (row.nfe, row.tokens, row.small, row.small_nfe, row.small_tokens, round(row.ms_p50), round(row.ms_p95))
        shown.add_row(row.group, right, str(row.harmful), *map(str, counts))
    return shown


def open_records(path: Path | None, model: str, tasks: int) -> Records[Edited]:
    """The records of an evaluation of ``tasks`` tasks; raises RequestError as :class:`.records.Records` does."""
    return Records(path, Settings(model, tasks), msgspec.json.Decoder(Edited))
