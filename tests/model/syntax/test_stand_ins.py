"""Stand-ins: the fills that gaps hold until they are filled."""

import pytest

from lacuna_model.core.params import Region
from lacuna_model.syntax import parses, stand_ins

from .drive import require
from .test_constraint import filled

GAPS = {
    "python": "def f(x):\n    if x:\n|\n    return [1, |\n\n\ndef g():\n|\n",
    "javascript": "function f(x) {\n  if (x) {\n|\n  return [1, |\n}\n\nfunction g() {|\n",
    "rust": "impl A {\n    fn f(x: u8) {\n        if x {\n|\n    }\n\n    fn g() {|\n}\n",
    "java": "class A {\n    int f(int x) {\n        if (x) {\n|\n    }\n\n    void g() {|\n}\n",
}


def cut_at_marks(marked: str, max_tokens: int) -> tuple[bytes, list[Region]]:
    """A text without its marks, and a region for each."""
    pieces = marked.encode().split(b"|")
    ends = [sum(map(len, pieces[: count + 1])) for count in range(len(pieces) - 1)]
    return b"".join(pieces), [Region(end, end, max_tokens=max_tokens) for end in ends]


@pytest.mark.parametrize("name", GAPS)
def test_stand_ins_make_the_text_valid(name: str) -> None:
    text, regions = cut_at_marks(GAPS[name], 12)
    found = stand_ins(text, regions, require(name))
    assert not parses(text, require(name))
    assert parses(filled(text, regions, tuple(found)), require(name))
