"""Figures of results, and how they are shown: a row maps headings to values; the rows of a table have the same ones."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, sqrt
from typing import TypeVar

from rich.table import Table

from lacuna_model.commands import output

Row = Mapping[str, str | float]
Result = TypeVar("Result")
ALL = "all"
_Z_95 = 1.959964  # normal quantile of a two-sided 95 % interval


def by(found: Sequence[Result], key: Callable[[Result], str]) -> dict[str, Sequence[Result]]:
    """The results by key, in the order in which keys first appear."""
    return {name: [one for one in found if key(one) == name] for name in dict.fromkeys(map(key, found))}


def grouped(found: Sequence[Result], key: Callable[[Result], str]) -> dict[str, Sequence[Result]]:
    """The results by key; of several, at last ``ALL`` results."""
    groups = by(found, key)
    return {**groups, ALL: found} if len(groups) > 1 else groups


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` per cent of the values do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * share / 100) - 1)] if ordered else 0.0


def times(ms: Sequence[float]) -> Row:
    """The median and the 95th percentile of milliseconds."""
    return {"ms p50": percentile(ms, 50), "p95": percentile(ms, 95)}


def ratio(value: float, of: float) -> float:
    """A quotient that is 0 where there is nothing to divide by."""
    return value / of if of else 0.0


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a rate (Wilson 1927), valid for small ``n`` and rates near 0 or 1."""
    if n == 0:
        return 0.0, 1.0
    rate, z2 = right / n, _Z_95**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z_95 / (1 + z2 / n) * sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    # Exact at 0 and 1, where rounding could exclude the rate.
    return centre - half if right else 0.0, centre + half if right < n else 1.0


def rated(name: str, right: int, n: int) -> Row:
    """A count, its share of ``n`` in per cent, and the 95 % interval of the share."""
    low, high = wilson(right, n)
    return {name: right, "%": 100 * ratio(right, n), "from": 100 * low, "to": 100 * high}


def show(rows: Sequence[Row], as_json: bool, title: str = "") -> None:
    """Prints rows as a table, or as a list in JSON."""
    if as_json:
        output.print_json([*rows])
    elif rows:
        output.print_table(table(rows, title))


def table(rows: Sequence[Row], title: str = "") -> Table:
    """One line a row, words to the left and numbers to the right."""
    grid = Table(title=title, box=None, pad_edge=False)
    for name, value in rows[0].items():
        grid.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        grid.add_row(*map(_shown, row.values()))
    return grid


def _shown(value: str | float) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"
    return value if isinstance(value, str) else f"{value:,.0f}"
