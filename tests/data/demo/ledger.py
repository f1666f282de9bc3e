"""Reads a household ledger from CSV and totals it by category and by month."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; expenses are negative."""

    day: date
    category: str
    amount: Decimal
    note: str = ""


class Ledger:
    """All entries, in the order of the file."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries

    @classmethod
    def load(cls, path: Path) -> "Ledger":
        """Reads a CSV file with the columns day, category, amount and note."""
        entries = []
        with path.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                entries.append(
                    Entry(
                        day=date.fromisoformat(row["day"]),
                        category=row["category"],
                        amount=Decimal(<<fill>>),
                        note=row["note"],
                    )
                )
        return cls(entries)

    def income(self) -> Decimal:
        """The sum of all positive amounts."""
        return sum((entry.amount for entry in self.entries if entry.amount > 0), Decimal(0))

    def expenses(self) -> Decimal:
        """The sum of all negative amounts."""
        return <<fill>>

    def balance(self) -> Decimal:
        """What is left."""
        return self.income() + self.expenses()

    def by_category(self) -> dict[str, Decimal]:
        """The total of every category."""
        totals: dict[str, Decimal] = defaultdict(Decimal)
        for entry in self.entries:
            totals[entry.category] += entry.amount
        return dict(totals)

    def by_month(self) -> dict[str, Decimal]:
        """The total of every month, such as 2024-05."""
        totals: dict[str, Decimal] = defaultdict(Decimal)
        <<fill>>
        return dict(totals)


def report(ledger: Ledger) -> str:
    """The totals as text, largest expense first."""
    lines = [f"{'income':<20}{ledger.income():>12}", f"{'expenses':<20}{ledger.expenses():>12}"]
    for category, total in sorted(ledger.by_category().items(), key=lambda item: item[1]):
        lines.append(f"  {category:<18}{total:>12}")
    lines.append(f"{'balance':<20}{ledger.balance():>12}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(Ledger.load(Path("ledger.csv"))))
