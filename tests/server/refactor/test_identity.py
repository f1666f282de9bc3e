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
    "ruby": "shop.rb",
    "lua": "list.lua",
    "bash": "backup.sh",
    "css": "site.css",
    "html": "index.html",
    "json": "settings.json",
    "yaml": "deploy.yaml",
    "toml": "project.toml",
}
# These languages have fewer usual patterns than those with statements.
MARKUP = ("html", "json", "yaml", "toml")
SYNTAX = Path(__file__).parents[2] / "data" / "syntax"
# A pattern, and the template that it becomes and that becomes it again.
CALL = ("$F($$$A)", "$F.marked($$$A)")
CALLS = {
    "php": ("$F($$$A)", "marked($F, $$$A)"),
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


def sample(bench: Bench, language: str) -> Source:
    return bench.source((SYNTAX / FILES[language]).read_text("utf-8"), FILES[language])


@pytest.mark.parametrize("language", FILES)
def test_a_pattern_to_itself_changes_nothing_and_refuses_nothing(bench: Bench, language: str) -> None:
    outcome = identity(language, [sample(bench, language)])
    assert outcome.patterns >= (45 if language in MARKUP else 100)
    assert outcome.places > (10 if language in MARKUP else 20)
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
    calls = [one for one in patterns(language) if one.startswith("$") and "($" in one]
    wraps = [(one, f"wrapped({one})") for one in calls] if language not in WRAPS else [WRAPS[language]]
    for pattern, template in wraps:
        (files, _) = bench.edits(by_structure(pattern, template), [source])
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
