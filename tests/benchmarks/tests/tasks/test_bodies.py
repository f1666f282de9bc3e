"""The gaps of classes of the standard library."""

import ast

from tests.benchmarks.tasks.bodies import MAX_GAPS, bodies

from lacuna_model.core import regions


def test_with_what_was_cut_out_each_text_is_a_class() -> None:
    found = list(bodies())
    assert len(found) > 20
    for one in found:
        gaps = regions.marked(one.text.encode())
        assert 2 <= len(gaps) == len(one.truths) <= MAX_GAPS
        (node,) = ast.parse(regions.with_fills(one.text.encode(), gaps, one.truths)).body
        assert isinstance(node, ast.ClassDef)
    assert found == list(bodies())
    assert found != list(bodies(seed=6))
