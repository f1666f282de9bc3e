"""Runs usual patterns as refactors to themselves over real code: ``python -m tests.server.refactor.identity``.

Arguments are pairs ``LANGUAGE FOLDER``. Every template equals its pattern, so no token may change and no place may be
refused. A line for each language: patterns, patterns refused, patterns with places, places, places left out, files
whose tokens changed, and seconds. Then ``there and back`` and ``trees`` with places, places left out, and files that
are not as they should be: a call to its template and back, and every call wrapped. With ``--list`` it names what the
numbers count.
"""

import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tree_sitter import Node

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.places.gather import gather
from lacuna_server.refactor.places.source import Source, walk
from lacuna_server.refactor.plan import FileEdits
from lacuna_server.refactor.rewriting.refactoring import Refactoring, by_structure

from .bench import Bench

PATTERNS = Path(__file__).parents[2] / "data" / "refactor" / "patterns.toml"
# A pattern, and the template that it becomes and that becomes it again.
CALL = ("$F($$$A)", "$F.marked($$$A)")
CALLS = {
    "php": ("$F($$$A)", "marked($F)($$$A)"),
    "java": ("new $T($$$A)", "Marked.of(new $T($$$A))"),
    "ruby": ("$A.new", "Marked.of($A.new)"),
    "bash": ("cp $A $B", "marked cp $A $B"),
    "css": ("margin: $$$A", "-marked-margin: $$$A"),
    "html": ("<li>$$$A</li>", "<li><marked>$$$A</marked></li>"),
    "json": ('{ "run": $A, $$$B }', '{ "marked": { "run": $A, $$$B } }'),
    "yaml": ("replicas: $A", "marked: [$A]"),
    "toml": ("ports = $A", "ports.marked = $A"),
}
# What becomes another text with the same tree around it, where the usual patterns have no call.
WRAPS = {
    "bash": ("if $A; then $$$B; fi", "if true && $A; then\n  $$$B\nfi"),
    "css": ("$A: $$$B", "-wrapped-$A: $$$B"),
    "html": ("<$T $$$A>$$$B</$T>", "<wrapped><$T $$$A>$$$B</$T></wrapped>"),
    "json": ("[$$$A]", "[[$$$A]]"),
    "yaml": ("[$$$A]", "[[$$$A]]"),
    "toml": ("[$$$A]", "[[$$$A]]"),
}


@dataclass
class Trip:
    """What refactors did: places, what they left out, and the files that are not as they should be."""

    places: int = 0
    left_out: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@dataclass
class Outcome(Trip):
    """What the patterns of a language did, each as a refactor to itself; ``wrong`` are the files it has changed."""

    patterns: int = 0
    refused: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    seconds: float = 0.0


def patterns(language: str) -> tuple[str, ...]:
    """The usual patterns of a language."""
    known = tomllib.loads(PATTERNS.read_text("utf-8"))[language]
    own = (line.replace("\\n", "\n") for line in known["patterns"].strip().splitlines())
    return (*(patterns(known["like"]) if "like" in known else ()), *own)


def identity(language: str, sources: Sequence[Source]) -> Outcome:
    """Apply every pattern as a refactor to itself: no token may change."""
    outcome, began = Outcome(), time.perf_counter()
    before = {source.path: source for source in sources}
    for pattern in patterns(language):
        outcome.patterns += 1
        places = outcome.places
        try:
            for new, file in applied(outcome, by_structure(pattern, pattern), pattern, sources):
                old = before[file.path]
                if new.text != old.text and list(tokens(new)) != list(tokens(old)):
                    outcome.wrong.append(f"{pattern!r}: {file.path}")
            outcome.unused += [] if outcome.places > places else [pattern]
        except RequestError as error:
            outcome.refused.append(f"{pattern!r}: {error}")
    outcome.seconds = time.perf_counter() - began
    return outcome


def tokens(source: Source) -> Iterator[bytes]:
    """The tokens of a file in order."""
    leaves = (source.data[node.start_byte : node.end_byte] for node in walk(source.tree.root_node) if not node.children)
    return (text for text in leaves if text.strip())


def there_and_back(language: str, sources: Sequence[Source]) -> Trip:
    """Refactor calls to their template, and back: every file must have its text again."""
    trip, (pattern, template) = Trip(), CALLS.get(language, CALL)
    made = applied(trip, by_structure(pattern, template), template, sources)
    texts = {source.path: source.text for source in sources}
    for back, _ in applied(Trip(), by_structure(template, pattern), pattern, [new for new, _ in made]):
        if back.text != texts.pop(back.path):
            trip.wrong.append(f"{pattern!r} and back: {back.path}")
    left = [new.path for new, _ in made if new.path in texts]
    trip.wrong += [f"{pattern!r} and back: {path}: no place" for path in left]
    return trip


def around_places(language: str, usual: Sequence[str], sources: Sequence[Source]) -> Trip:
    """Wrap every call: around each place, the tree must be as it was."""
    trip, before = Trip(), {source.path: source for source in sources}
    calls = [one for one in usual if one.startswith("$") and "($" in one]
    for pattern, template in [WRAPS[language]] if language in WRAPS else [(one, f"wrapped({one})") for one in calls]:
        for made, file in applied(trip, by_structure(pattern, template), template, sources):
            if outline(before[made.path], file, new=False) != outline(made, file, new=True):
                trip.wrong.append(f"{template!r}: {made.path}")
    return trip


def applied(
    trip: Trip, refactoring: Refactoring, name: str, sources: Sequence[Source]
) -> list[tuple[Source, FileEdits]]:
    """Return the files that a refactor changes, as it leaves them, with its edits."""
    files, left_out = Bench().edits(refactoring, sources)
    before = {source.path: source for source in sources}
    trip.left_out += [f"{name!r}: {line}" for line in left_out if files]
    made = []
    for file in files:
        source = before[file.path]
        trip.places += len(file.ready)
        trip.left_out += [f"{name!r}: {file.path}: {one.label}: {one.message}" for one in file.edits if one.message]
        if file.ready:
            made.append((Source(source.path, file.rewritten(source.data).decode(), source.language), file))
    return made


def outline(source: Source, file: FileEdits, *, new: bool) -> list[str]:
    """The types of all nodes outside the places, in order; a place itself is one word."""
    spans, moved = [], 0
    for edit in file.ready:
        length = len(edit.new_text.encode())
        start = edit.start + (moved if new else 0)
        spans.append((start, start + (length if new else edit.end - edit.start)))
        moved += length - (edit.end - edit.start)
    return list(_types(source.tree.root_node, spans))


def _types(node: Node, spans: list[tuple[int, int]]) -> Iterator[str]:
    if any(start <= node.start_byte and node.end_byte <= end for start, end in spans):
        yield "place"
        return
    yield node.type
    for child in node.children:
        yield from _types(child, spans)


def main() -> None:
    """Print a line for each language."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    print("language patterns refused used places left_out changed seconds")
    for language, folder in zip(arguments[::2], arguments[1::2], strict=True):
        sources, _ = gather([folder], [language])
        found = identity(language, sources)
        used = found.patterns - len(found.refused) - len(found.unused)
        counts = found.patterns, len(found.refused), used, found.places, len(found.left_out), len(found.wrong)
        print(language, *counts, f"{found.seconds:.0f}", flush=True)
        _list(found, ("refused", "unused", "left_out", "wrong"))
        trips = {
            "there and back": there_and_back(language, sources),
            "trees": around_places(language, patterns(language), sources),
        }
        for title, trip in trips.items():
            print(f"{language}, {title}:", trip.places, len(trip.left_out), len(trip.wrong), flush=True)
            _list(trip, ("left_out", "wrong"))


def _list(found: Trip, titles: Sequence[str]) -> None:
    for title in titles if "--list" in sys.argv else ():
        for line in getattr(found, title):
            print(f"  {title}: {line}", flush=True)


if __name__ == "__main__":
    main()
