import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.broken.neutral import is_laid_out, without_block
from lacuna_model.syntax.text.balance import line_of


def without(text: bytes) -> bytes:
    place = text.index(b"|")
    return without_block(line_of(text.replace(b"|", b""), place, place))


@pytest.mark.parametrize(
    ("text", "fill", "fits"),
    [
        (b"f() {\n  |\n}\n", b"a;", True),
        (b"f() \n  |\n}\n", b"{", False),
        (b"f() |\n  a;\n}\n", b"{", True),
        (b"f() |\n}\n", b"{", True),
        (b"switch (a) |\ncase 1:\n  b();\n}\n", b"{", True),
        (b"namespace a |\nclass B {};\n}\n", b"{", True),
        (b"|\nclass B {};\n}\n", b"{", False),
        (b"|\nimport a;\nf() \n  b();\n}\n", b"x {", False),
        (b"  if (a|\n    b();\n  }\n", b") {", True),
        (b"f(|", b"{", True),
        (b"f(\n  g {\n    a\n  |\n}\n", b"})", True),
        (b"f {\n    g [\n  |\n}\n", b"]", False),
        (b'f("|\nb")\n', b'a", "', False),
        (b'f("|\n', b'a", b', True),
    ],
)
def test_a_fill_that_opens_a_block_fits_the_lines_below(text: bytes, fill: bytes, fits: bool) -> None:
    place = text.index(b"|")
    assert is_laid_out(line_of(text.replace(b"|", b""), place, place), fill, require("cpp").lexicon) is fits
