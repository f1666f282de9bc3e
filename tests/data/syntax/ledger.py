"""A small ledger."""

import functools
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One entry: an amount in cents and what it was for."""

    amount: int
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.amount / 100:.2f} {self.note or 'none'}"


class Ledger:
    def __init__(self, entries=()):
        self.entries = list(entries)

    def add(self, amount, note="", *, strict=False):
        if strict and amount == 0:
            raise ValueError("an entry of nothing")
        self.entries.append(Entry(amount, note))
        return self

    @functools.lru_cache(maxsize=None)
    def total(self, *, above: int = 0) -> int:
        # only what is larger than the bound counts
        return sum(entry.amount for entry in self.entries if entry.amount > above)

    def by_note(self):
        groups = {}
        for entry in self.entries:
            try:
                groups[entry.note].append(entry)
            except KeyError:
                groups[entry.note] = [entry]
            else:
                continue
        return {note: [e.amount for e in found] for note, found in groups.items()}


def main(path="größe.txt"):
    """Reads a file.

    Each line has an amount and a note; empty lines are skipped.
    """
    ledger = Ledger()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                continue
            amount, _, note = line.partition(" ")
            ledger.add(int(amount), note.strip())
    while ledger.total() > 1_000_000:
        ledger.entries.pop()
    print("Summe: €", ledger.total(), sep="\t")


if __name__ == "__main__":
    main()
