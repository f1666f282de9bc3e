"""Usual patterns over files of every language: to themselves, there and back, and with the tree around each place."""

from pathlib import Path

import pytest

from lacuna_server.refactor.places.source import Source

from .bench import Bench
from .identity import identity
from .trips import there_and_back

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
    trip = there_and_back(language, [sample(bench, language)])
    assert trip.places > 0
    assert trip.wrong == []
