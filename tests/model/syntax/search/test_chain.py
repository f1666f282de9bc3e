"""Several gaps that only fill together: each is completed by the exact test up to the next one."""

import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import with_exact_test

from lacuna_model.core.constraint import GapView
from lacuna_model.core.params import Region
from lacuna_model.syntax import SyntaxConstraint, parses

GAP = "|"
TEXTS = {
    "a head and the end of its body": (
        "javascript",
        "|\n  if (a) return false;\n}\nconst p = {\n  q: { r: [1],\n|\n};\nh(\n|\n  c, d => {\n    e();\n});\n",
    ),
    "a bracket that two gaps share": ("javascript", "f(|, [2\n, 3\n|);\n"),
    "a function over a gap": ("go", "package p\n\n|\n\tx := 1\n\tif x > 0 {\n|\n}\n"),
}


def foreseen(name: str, text: str, tokens: SmallTokens) -> str:
    pieces = text.split(GAP)
    regions, place = [], 0
    for piece in pieces[:-1]:
        place += len(piece)
        regions.append(Region(place, place, max_tokens=40))
    bare = "".join(pieces)
    constraint = SyntaxConstraint(bare.encode(), regions, with_exact_test(name), tokens, strict=True)
    fills = constraint.foresee([GapView((), (None,) * 16, budget=24) for _ in regions])
    assert constraint.witness is not None
    return "".join(part for pair in zip(pieces, [*fills, ""], strict=True) for part in pair)


@pytest.mark.parametrize("case", TEXTS)
def test_a_first_witness_of_several_gaps_is_found(case: str, tokens: SmallTokens) -> None:
    name, text = TEXTS[case]
    assert parses(foreseen(name, text, tokens).encode(), with_exact_test(name))
