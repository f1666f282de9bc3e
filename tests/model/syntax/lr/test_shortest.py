"""The terminals of a grammar as text."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.lr.insertions import Insertion
from lacuna_model.syntax.lr.parse_table import ParseTable, parse_table
from lacuna_model.syntax.lr.shortest import Graph, written


def table_and_insertions(name: str) -> tuple[ParseTable, list[Insertion]]:
    language = require(name)
    table = parse_table(language)
    assert table is not None
    return table, written(table, language.lexicon.operand, Graph(table))


@pytest.mark.parametrize(("name", "kind"), [("go", "source_file_token1"), ("c", "preproc_include_token2")])
def test_a_terminal_that_is_a_hidden_line_end_is_written_as_a_newline(name: str, kind: str) -> None:
    table, known = table_and_insertions(name)
    assert [one.text for one in known if table.grammar.node_kind_for_id(one.terminal) == kind] == [b"\n"]


def test_a_terminal_without_a_fixed_text_is_written_as_a_text_that_the_lexer_takes() -> None:
    table, found = table_and_insertions("c")
    known = {table.grammar.node_kind_for_id(one.terminal): one.text for one in found}
    assert (known["identifier"], known["system_lib_string"], known["number_literal"]) == (b"x", b"<x>", b"0")
    assert "comment" not in known
