"""The patterns of a change, and what becomes of their places."""

import pytest

from lacuna_model.next_edit.changes import RecentChange, TokenizedText
from lacuna_model.next_edit.patterns import Pattern, patterns
from lacuna_model.next_edit.places import places


def becomes(pattern: Pattern, text: str) -> list[str]:
    """The texts after the change at each place of the pattern."""
    return [text[: one.start] + one.text + text[one.end :] for one in places(pattern, TokenizedText(text))]


@pytest.mark.parametrize(
    ("old", "new", "elsewhere", "expected"),
    [
        ("f(a)\n", "g(a)\n", "x = f(b)\n", "x = g(b)\n"),
        ('assert "" != a.b\n', 'assert a.b != ""\n', 'assert "" != c.d\n', 'assert c.d != ""\n'),
        ("eq(w.text(), 'one two')\n", "eq('one two', w.text())\n", "eq(w.text(), 'three')\n",
         "eq('three', w.text())\n"),
        ("  if a:\n    b()\n", "  while a:\n    b()\n    c()\n", "if a:\n  b()\n", "while a:\n  b()\n"),
        ("run(x, y)\n", "run(x, z, y)\n", "  run(x,  y)\n", "  run(x, z, y)\n"),
        ("log('one', x)\na()\n", "a()\n", "log('two', x)\nb()\n", "b()\n"),
        ("a.b(1)  # why\n", "a.b(1)\n", "  a.b(2)  # why\n", "  a.b(2)\n"),
        # Lines have the indentation of their place.
        ("  done(a)\n  end()\n", "  done(a)\n  if a:\n    b()\n  end()\n",
         "      done(a)\n      end()\n", "      done(a)\n      if a:\n        b()\n      end()\n"),
        ("done(a)\nend()\n", "done(a)\nif a:\n  b()\nend()\n",
         "      done(a)\n      end()\n", "      done(a)\n      if a:\n        b()\n      end()\n"),
        ("      done(a)\n      end()\n", "      done(a)\n      if a:\n        b()\n      end()\n",
         "done(a)\nend()\n", "done(a)\nif a:\n  b()\nend()\n"),
        ("\tdone(a)\n\tend()\n", "\tdone(a)\n\tif a {\n\t\tb()\n\t}\n\tend()\n",
         "\t\tdone(a)\n\t\tend()\n", "\t\tdone(a)\n\t\tif a {\n\t\t\tb()\n\t\t}\n\t\tend()\n"),
        ("\tdone(a)\n\tend()\n", "\tdone(a)\n\n\tb()\n\tend()\n",
         "\t\tdone(a)\n\t\tend()\n", "\t\tdone(a)\n\n\t\tb()\n\t\tend()\n"),
        ("data = load(path)\nuse(data)\n", "data = load(path)\ncheck(data)\nuse(data)\n",
         "        data = load(path)\n        use(data)\n",
         "        data = load(path)\n        check(data)\n        use(data)\n"),
        # The first line of a block, or of a file, and one behind the last line.
        ("def f():\n    end(a)\n", "def f():\n    done(a)\n    end(a)\n",
         "def g():\n    b()\n    end(a)\n", "def g():\n    b()\n    done(a)\n    end(a)\n"),
        ("end(a)\n", "done(a)\nend(a)\n", "    end(a)\n", "    done(a)\n    end(a)\n"),
        ("if a:\n    b()\nend(a)\n", "if a:\n    b()\ndone(a)\nend(a)\n",
         "    c()\n    end(a)\n", "    c()\n    done(a)\n    end(a)\n"),
        ("  if a {\n    b()\n\n  }\n", "  if a {\n    b()\n\n    done(a)\n  }\n",
         "if a {\n  b()\n\n}\n", "if a {\n  b()\n\n  done(a)\n}\n"),
        # Lines that are broken, indented, or begin with another token.
        ("run(a, b)\n", "run(\n    a,\n    b,\n)\n", "    run(a, b)\n",
         "    run(\n        a,\n        b,\n    )\n"),
        ("done(a)\n", "if a:\n    done(a)\n", "  done(a)\n", "  if a:\n      done(a)\n"),
        ("\tx := done(a)\n", "\tdone(b)\n", "\t\tx := done(a)\n", "\t\tdone(b)\n"),
        ("done(a)  or b\n", "done(a)  or c\n", "    x = done(a)  or b\n", "    x = done(a)  or c\n"),
    ],
)  # fmt: skip
def test_a_pattern_of_the_change_makes_the_expected_text(old: str, new: str, elsewhere: str, expected: str) -> None:
    change = RecentChange.at(old, new, 0)
    assert change is not None
    assert expected in {text for pattern in patterns(change) for text in becomes(pattern, elsewhere)}
