import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lacuna_server.refactor.places.source import Source
from lacuna_server.refactor.rewriting.refactoring import Found, Refactoring, by_syntax

from .bench import Bench
from .real_files import WRAPS, kept_texts, strings

SYNTAX = sorted((Path(__file__).parents[2] / "data" / "syntax").iterdir())
# Modules of the standard library with many strings of several lines and many comments between arguments.
LIBRARY = [Path(sysconfig.get_path("stdlib"), f"{name}.py") for name in ("textwrap", "contextlib")]
FILES = {path.name: path for path in (*SYNTAX, *LIBRARY) if Bench().language(path.name) in WRAPS}


def check(bench: Bench, refactoring: Refactoring, path: Path) -> int:
    """Apply the ready edits and check that nothing else has changed. Returns the number of rewritten places."""
    source = bench.source(path.read_text("utf-8"), path.name)
    files, _ = bench.edits(refactoring, [source])
    for file in files:
        made = bench.source(file.rewritten(source.data).decode(), path.name)
        assert made.tree.root_node.has_error <= source.tree.root_node.has_error
        assert not kept_texts(source) - kept_texts(made)
        assert set(kept_texts(made) - kept_texts(source)) <= {"x"}
        assert not strings(source) - strings(made)
    return sum(len(file.ready) for file in files)


@pytest.mark.parametrize("name", FILES)
def test_a_wrapped_statement_keeps_its_strings_and_comments(bench: Bench, name: str) -> None:
    language = bench.language(name)
    query, template = WRAPS[language]
    assert check(bench, by_syntax(f"{query} @place", template, language), FILES[name]) > 0


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(sorted(FILES)))
def test_any_subset_of_the_places_can_be_wrapped(bench: Bench, data: st.DataObject, name: str) -> None:
    language = bench.language(name)
    query, template = WRAPS[language]
    whole = by_syntax(f"{query} @place", template, language)

    def find(sources: Sequence[Source]) -> list[Found]:
        found = list(whole.find(sources))
        kept = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
        return [item for item, chosen in zip(found, kept, strict=True) if chosen]

    check(bench, Refactoring(whole.title, find), FILES[name])
