"""Openings whose blocks each have a head of their own, where the likeliest ones will not do."""

import pytest

from lacuna_model.syntax.elaborate import elaborate
from lacuna_model.syntax.right_side import RightSide

from .drive import between, require

FOUND = {
    "a method of a value, and a call in it": (
        "typescript",
        "const a = f({\n",
        "\n      b: c,\n    });\n  },\n});\nlet d = 1;\n",
    ),
    "a function in a list, with a switch": (
        "javascript",
        "const a = [\n",
        "\n        break;\n      }\n      return { ...c };\n    case 2:\n      e();\n  }\n  return f;\n},\n];\n",
    ),
    "a constructor's own block, in a class": (
        "cpp",
        "int a;\n\n",
        "\n    {}\n\nprotected:\n    int b() { return c; }\n};\n",
    ),
    "an arm of a macro": (
        "rust",
        "enum A {\n    B,\n",
        "\n        struct C {\n            $($d: bool,)*\n        }\n    }\n}\n",
    ),
    "the head of a match, in a chain": (
        "rust",
        "fn f() {\n    a();\n",
        "\n        .b(c)\n    {\n        Some(d) => e(d),\n        None => (),\n    }\n}\n",
    ),
    "an interface in parentheses": (
        "go",
        "package a\n\nvar b = []c{{\n\td: e,\n}, {\n",
        "\n\t\tF(int, G) (int, error)\n\t\tH(...G)\n\t})(nil),\n\ti: j,\n}}\n",
    ),
    "a function that is called where it ends": (
        "go",
        "package a\n\nfunc f() {\n",
        "\n\t\ta.b()\n\t\tclose(b)\n\t}()\n\tc := d\n\te(c)\n}\n",
    ),
    "a condition's first statement": (
        "c",
        "int f(int a) {\n    int b;\n",
        "\n        b = 1;\n    else {\n        b = 2;\n    }\n    return b;\n}\n",
    ),
    "the end of a type's arguments": (
        "typescript",
        "let a = 1;\n",
        "\n  B<C['d']>\n>;\nlet e = 2;\n",
    ),
    "a statement that ends in front of its block's end": (
        "cpp",
        "void f() {\n  if (a) {\n    b = c(d, [&](int e) {\n      return e;\n",
        "\n}\n\nint g;\n",
    ),
}


@pytest.mark.parametrize(("name", "before", "after"), FOUND.values(), ids=FOUND)
def test_a_completion_is_found(name: str, before: str, after: str) -> None:
    document, closer = between(before, after, require(name))
    assert any(document.check([text]).valid for text in closer.completions(b""))


def test_many_brackets_do_not_make_too_many_ways() -> None:
    right = RightSide(b"\n" + b"}\n" * 14, require("javascript").lexicon)
    found = elaborate(right, [b"{"] * 14)
    assert 1 < len(found) <= 240
    assert len(set(found)) == len(found)
