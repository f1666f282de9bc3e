"""Usual patterns over files of every language: to themselves, there and back, and with the tree around each place."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_sitter import Node

from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.plan import FileEdits
from lacuna_server.refactor.rewriting.refactoring import by_structure

from .bench import Bench
from .identity import identity, patterns

FILES = {
    "python": "ledger.py",
    "javascript": "queue.js",
    "typescript": "shapes.ts",
    "tsx": "Panel.tsx",
    "go": "cache.go",
    "java": "Account.java",
    "csharp": "Basket.cs",
    "rust": "stack.rs",
    "php": "page.php",
    "c": "table.c",
    "cpp": "vector.cpp",
    "kotlin": "Ledger.kt",
}
SYNTAX = Path(__file__).parents[2] / "data" / "syntax"
# A pattern, and the template that it becomes and that becomes it again.
CALL = ("$F($$$A)", "$F.marked($$$A)")
CALLS = {"php": ("$F($$$A)", "marked($F, $$$A)"), "java": ("new $T($$$A)", "Marked.of(new $T($$$A))")}


def sample(bench: Bench, language: str) -> Source:
    return bench.source((SYNTAX / FILES[language]).read_text("utf-8"), FILES[language])


@pytest.mark.parametrize("language", FILES)
def test_a_pattern_to_itself_changes_nothing_and_refuses_nothing(bench: Bench, language: str) -> None:
    outcome = identity(language, [sample(bench, language)])
    assert outcome.patterns >= 100
    assert outcome.places > 20
    assert (outcome.refused, outcome.left_out, outcome.changed) == ([], [], [])


@pytest.mark.parametrize("language", FILES)
def test_a_call_is_restored_by_the_reverse_refactor(bench: Bench, language: str) -> None:
    source = sample(bench, language)
    pattern, template = CALLS.get(language, CALL)
    made = applied(bench, source, pattern, template)
    assert made.text != source.text
    assert applied(bench, made, template, pattern).text == source.text


@pytest.mark.parametrize("language", FILES)
def test_around_every_place_the_tree_is_as_it_was(bench: Bench, language: str) -> None:
    source = sample(bench, language)
    checked = 0
    for pattern in patterns(language):
        if not pattern.startswith("$") or "($" not in pattern:
            continue
        (files, _) = bench.edits(by_structure(pattern, f"wrapped({pattern})"), [source])
        for file in files:
            made = Source(source.path, file.rewritten(source.data).decode(), source.language)
            assert outline(source, file, new=False) == outline(made, file, new=True)
            checked += len(file.ready)
    assert checked > 0


def applied(bench: Bench, source: Source, pattern: str, template: str) -> Source:
    files, _ = bench.edits(by_structure(pattern, template), [source])
    text = files[0].rewritten(source.data).decode() if files else source.text
    return Source(source.path, text, source.language)


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
