"""Usual patterns over files of every language: to themselves, there and back, and with the tree around each place."""

from pathlib import Path

import pytest

from lacuna_server.refactor.places.source import Source

from .bench import Bench
from .identity import identity, there_and_back

SYNTAX = Path(__file__).parents[2] / "data" / "syntax"
FILES = {Bench().language(path.name): path for path in sorted(SYNTAX.iterdir())}
# These languages have fewer usual patterns than those with statements.
MARKUP = ("html", "json", "yaml", "toml")


def sample(bench: Bench, language: str) -> Source:
    return bench.source(FILES[language].read_text("utf-8"), FILES[language].name)


@pytest.mark.parametrize("language", FILES)
def test_a_pattern_to_itself_changes_nothing_and_refuses_nothing(bench: Bench, language: str) -> None:
    outcome = identity(language, [sample(bench, language)])
    assert outcome.patterns >= (45 if language in MARKUP else 100)
    assert outcome.places > (10 if language in MARKUP else 20)
    assert (outcome.refused, outcome.left_out, outcome.wrong) == ([], [], [])


@pytest.mark.parametrize("language", FILES)
def test_a_call_is_restored_by_the_reverse_refactor(bench: Bench, language: str) -> None:
    trip = there_and_back(language, [sample(bench, language)])
    assert trip.places > 0
    assert trip.wrong == []
