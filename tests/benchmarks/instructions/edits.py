"""``evaluate --instructions``: edits by instruction, how many are right, and what passes they take."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from tests.benchmarks.figures import Row, grouped, times
from tests.benchmarks.instructions.judging import harm, judged
from tests.benchmarks.instructions.tasks import Task
from tests.benchmarks.records import Records

from lacuna_model.core.params import DecodeOptions, EditLines, InfillRequest, InfillResult, Region
from lacuna_model.text import diff

# A task that takes longer counts as wrong.
MAX_MS = 300_000
MAX_TOKENS = 512
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


def open_records(path: Path | None, model: str, tasks: int) -> Records[Edited]:
    """The records of an evaluation of ``tasks`` tasks; raises RequestError as :class:`Records` does."""
    return Records(path, Edited, Settings(model, tasks))


def measure(
    tasks: Sequence[Task], fill: Callable[[InfillRequest], InfillResult], records: Records[Edited]
) -> list[Edited]:
    """Edits task after task, and judges the results."""
    return records.run(
        "edits",
        tasks,
        lambda task: edited(task, fill),
        key=lambda task: task.name,
        answered=lambda one: one.task,
    )


def edited(task: Task, fill: Callable[[InfillRequest], InfillResult]) -> Edited:
    """Edits the lines of a task, and judges the result."""
    text = task.text
    start, end = task.span
    region = Region(start, end, max_tokens=MAX_TOKENS)
    options = DecodeOptions(deadline_ms=MAX_MS)
    request = InfillRequest(text, (region,), EditLines(task.instruction), path=task.file, options=options)
    result = fill(request)
    new = request.filled(result.fills)
    done = result.status == "ok"
    harmed = harm(task, result.fills[0]) if done and new != text else ""
    why = (harmed or judged(task, new, result.fills[0])) if done else f"refused: {result.message}"
    before, after = text.encode()[start:end].decode().splitlines(), result.fills[0].splitlines()
    changed = 1 - len(diff.pairs(before, after)) / max(len(before), len(after), 1)
    written, stats = (result.refused or result.fills)[0], result.stats
    counts = stats.nfe, stats.tokens, round(stats.ms, 1), round(changed, 3)
    return Edited(task.name, task.group, why, written, *counts, harmed)


def rows(found: Sequence[Edited]) -> list[Row]:
    """The figures of each group and of all tasks: what is right and what does harm; small edits are counted apart."""
    figures: list[Row] = []
    for name, group in grouped(found, lambda one: one.group).items():
        small = [one for one in group if one.changed < SMALL]
        row: Row = {
            "group": name,
            "tasks": len(group),
            "right": sum(not one.why for one in group),
            "harmful": sum(bool(one.harm) for one in group),
            "refused": sum(one.why.startswith("refused") for one in group),
            "passes": sum(one.nfe for one in group),
            "tokens": sum(one.tokens for one in group),
            "small edits": len(small),
            "their passes": sum(one.nfe for one in small),
            "their tokens": sum(one.tokens for one in small),
        }
        figures.append({**row, **times([one.ms for one in group])})
    return figures
