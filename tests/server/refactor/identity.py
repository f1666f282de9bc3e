"""Runs usual patterns as refactors to themselves over real code: ``python -m tests.server.refactor.identity``.

Arguments are pairs ``LANGUAGE FOLDER``. Every template equals its pattern, so no token may change and no place may be
refused. A line for each language: patterns, patterns refused, patterns with places, places, places left out, files
whose tokens changed, and seconds. Then ``there and back`` and ``trees`` with places, places left out, and files that
are not as they should be (:mod:`tests.server.refactor.trips`). With ``--list`` it names what the numbers count.
"""

import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.gather import gather
from lacuna_server.refactor.places.source import Source, walk
from lacuna_server.refactor.rewriting.refactoring import Refactoring, by_structure

from .trips import Trip, applied, around_places, there_and_back

PATTERNS = Path(__file__).parents[2] / "data" / "refactor" / "patterns.toml"


@dataclass
class Outcome:
    """What the patterns of a language did."""

    patterns: int = 0
    refused: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    places: int = 0
    left_out: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    seconds: float = 0.0


def patterns(language: str) -> tuple[str, ...]:
    """The usual patterns of a language."""
    known = tomllib.loads(PATTERNS.read_text("utf-8"))[language]
    own = (line.replace("\\n", "\n") for line in known["patterns"].strip().splitlines())
    return (*(patterns(known["like"]) if "like" in known else ()), *own)


def identity(language: str, sources: Sequence[Source]) -> Outcome:
    """Apply every pattern as a refactor to itself."""
    outcome, began = Outcome(), time.perf_counter()
    for pattern in patterns(language):
        outcome.patterns += 1
        try:
            check(by_structure(pattern, pattern), pattern, sources, outcome)
        except RequestError as error:
            outcome.refused.append(f"{pattern!r}: {error}")
    outcome.seconds = time.perf_counter() - began
    return outcome


def check(refactoring: Refactoring, name: str, sources: Sequence[Source], outcome: Outcome) -> None:
    """Run a refactor that must change no token, and count what it did."""
    trip, before = Trip(), {source.path: source for source in sources}
    for new, file in applied(trip, refactoring, name, sources):
        old = before[file.path]
        if new.text != old.text and list(tokens(new)) != list(tokens(old)):
            outcome.changed.append(f"{name!r}: {file.path}")
    outcome.places += trip.places
    outcome.left_out += trip.left_out
    outcome.unused += [] if trip.places else [name]


def tokens(source: Source) -> Iterator[bytes]:
    """The tokens of a file in order."""
    leaves = (source.data[node.start_byte : node.end_byte] for node in walk(source.tree.root_node) if not node.children)
    return (text for text in leaves if text.strip())


def main() -> None:
    """Print a line for each language."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    print("language patterns refused used places left_out changed seconds")
    for language, folder in zip(arguments[::2], arguments[1::2], strict=True):
        sources, _ = gather([folder], [language])
        found = identity(language, sources)
        used = found.patterns - len(found.refused) - len(found.unused)
        counts = found.patterns, len(found.refused), used, found.places, len(found.left_out), len(found.changed)
        print(language, *counts, f"{found.seconds:.0f}", flush=True)
        _list(found, ("refused", "unused", "left_out", "changed"))
        trips = {
            "there and back": there_and_back(language, sources),
            "trees": around_places(language, patterns(language), sources),
        }
        for title, trip in trips.items():
            print(f"{language}, {title}:", trip.places, len(trip.left_out), len(trip.wrong), flush=True)
            _list(trip, ("left_out", "wrong"))


def _list(found: Outcome | Trip, titles: Sequence[str]) -> None:
    for title in titles if "--list" in sys.argv else ():
        for line in getattr(found, title):
            print(f"  {title}: {line}", flush=True)


if __name__ == "__main__":
    main()
