from lacuna_model.syntax.broken.blocks import without_blocks
from lacuna_model.syntax.text.closers import line_of

TEXT = b"""class A {
  int a;

  void f() {
    if (a) {
      g(|);
    }
    h();
  }
}
int b;
"""


def without(text: bytes) -> list[bytes]:
    place = text.index(b"|")
    return list(without_blocks(line_of(text.replace(b"|", b""), place, place)))


def test_the_line_goes_first_and_then_each_block_around_it() -> None:
    own, inner, method, whole = without(TEXT)
    assert own == TEXT.replace(b"      g(|);\n", b"")
    assert inner == TEXT.replace(b"      g(|);\n", b"")
    assert method == TEXT.replace(b"    if (a) {\n      g(|);\n    }\n    h();\n", b"")
    assert whole == b"class A {\n}\nint b;\n"


def test_a_line_that_opens_a_block_goes_with_it() -> None:
    (own,) = without(b"x = 1;\nif (a|) {\n  b();\n}\ny = 2;\n")
    assert own == b"x = 1;\ny = 2;\n"


def test_blank_lines_belong_to_the_block_around_them() -> None:
    own, block = without(b"f() {\n  a\n\n  |b\n\n}\n")
    assert own == b"f() {\n  a\n\n}\n"
    assert block == b"f() {\n}\n"
