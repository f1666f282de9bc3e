import pytest

from lacuna_model.syntax.left_side import beginnings

from .drive import require

CASES = {
    "a decorated definition": ("python", "class A:\n    @property\n", ["    def x(): pass"]),
    "no block of columns": ("python", "def f():\n    x = 1\n", []),
    "a case of a switch": ("java", "switch (a) {\n    // first\n", ["case x:"]),
    "an arm of a match": ("rust", "match a {\n", ["x => ", "x => x,"]),
    "an arm of a macro": ("rust", "macro_rules! a {\n", ["() => "]),
    "what a condition decides": ("c", "\nif (a)\n", [";", "{}"]),
    "a block that is due": ("go", "\nfunc f(a int)\n", ["{}"]),
    "what a constructor sets up": ("cpp", "A(int x) :\n", ["x() {}"]),
    "a line that goes on": ("c", "#if a || \\\n", ["x \\"]),
    "nothing": ("c", "int a;\n", []),
}


@pytest.mark.parametrize("case", CASES)
def test_a_new_line_begins_with_what_the_text_in_front_asks_for(case: str) -> None:
    name, text, expected = CASES[case]
    assert beginnings(text.encode(), require(name).lexicon) == [text.encode() for text in expected]


def test_a_long_list_in_front_is_read_once() -> None:
    members = ", ".join(f"m_{number}(a_{number})" for number in range(40))
    assert not beginnings(f"A(int x) : {members} {{".encode(), require("cpp").lexicon)
    assert beginnings(f"A(int x) :\n  {members},\n".encode(), require("cpp").lexicon) == [b"x() {}"]
