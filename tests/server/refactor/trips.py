"""Round trips of refactors, and the trees around their places, over files of one language."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import FileEdits
from lacuna_server.refactor.rewriting.refactoring import Refactoring, by_structure

from .bench import Bench

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
    """What refactors that wrap code did: places, what they left out, and the files that are not as they should be."""

    places: int = 0
    left_out: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


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
