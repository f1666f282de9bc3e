"""Statistics and the table that several benchmarks use."""

from collections.abc import Sequence
from math import ceil

import msgspec
from rich.table import Table


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that at least ``share`` per cent of the values do not exceed, or 0 without values."""
    ordered = sorted(values)
    return round(ordered[max(0, ceil(len(ordered) * share / 100) - 1)], 1) if ordered else 0.0


def table(rows: Sequence[msgspec.Struct]) -> Table:
    """Returns the table of the results: one line per result, one column per field."""
    shown = Table(box=None, pad_edge=False)
    for name in rows[0].__struct_fields__:
        shown.add_column(name.replace("_", " "), justify="left" if name in ("what", "file", "plugin") else "right")
    for row in rows:
        values = msgspec.structs.astuple(row)
        shown.add_row(
            *("" if value is None else f"{value:,}" if not isinstance(value, str) else value for value in values)
        )
    return shown
