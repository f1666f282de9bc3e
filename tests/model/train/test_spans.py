import random
from itertools import pairwise

import pytest
import tree_sitter
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import tiny

from lacuna_model.train.languages import parser_of
from lacuna_model.train.spans import draw_spans

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab \n"), max_size=80)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 8), st.integers(), st.sampled_from([0.0, 1.0]))
def test_spans_are_ordered_disjoint_and_apart(text: str, count: int, seed: int, nodes: float) -> None:
    spans = draw_spans(text, count, random.Random(seed), language="python", nodes=nodes)
    assert len(spans) <= count
    assert all(0 <= begin <= end <= len(text) for begin, end in spans)
    assert all(end < begin for (_, end), (begin, _) in pairwise(spans))


def nodes_of(text: str) -> set[str]:
    """The text of every named node."""
    found: set[str] = set()

    def walk(node: tree_sitter.Node) -> None:
        found.add(text.encode()[node.start_byte : node.end_byte].decode())
        for child in node.named_children:
            walk(child)

    walk(parser_of("python").parse(text.encode()).root_node)
    return found


@pytest.mark.parametrize("text", [tiny.CODE, tiny.CODE.replace("value", "größe")], ids=["ascii", "wide"])
def test_nodes_of_the_syntax_are_cut_out(text: str) -> None:
    found = nodes_of(text)
    share = {}
    for nodes in (0.0, 1.0):
        spans = [
            span
            for seed in range(40)
            for span in draw_spans(text, 1, random.Random(seed), language="python", nodes=nodes)
        ]
        share[nodes] = sum(text[begin:end] in found for begin, end in spans) / len(spans)
    assert share[1.0] > 0.7
    assert share[0.0] < 0.5


def test_a_language_without_a_grammar_is_cut_anyway() -> None:
    assert draw_spans("some text\n" * 5, 2, random.Random(0), language="cobol", nodes=1.0)
