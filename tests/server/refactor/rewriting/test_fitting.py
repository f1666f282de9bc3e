"""A rewritten place means what its template says: brackets, braces and ends of statements, or it is left out."""

import pytest
from tests.server.refactor.bench import Bench, marked

from lacuna_server.refactor.rewriting.refactoring import by_structure

TWO = "one($A);\ntwo($A);"


@pytest.mark.parametrize(
    ("name", "pattern", "template", "before", "after"),
    [
        ("a.py", "double($X)", "$X * 2", "x = double(a + b)\n", "x = (a + b) * 2\n"),
        ("a.py", "double($X)", "$X * 2", "x = 2 ** double(n)\n", "x = 2 ** (n * 2)\n"),
        ("a.py", "double($X)", "$X * 2", "x = double(double(a) ** 2)\n", "x = (a * 2) ** 2 * 2\n"),
        ("a.py", "minus($A, $B)", "$A - $B", "minus(a, b - c)\n", "a - (b - c)\n"),
        ("a.py", "same($A, $B)", "assert $A == $B", "same(a or b, c)\n", "assert (a or b) == c\n"),
        ("a.py", "same($A, $B)", "assert $A == $B", "same(lambda: 1, f)\n", "assert (lambda: 1) == f\n"),
        ("a.py", "same($A, $B)", "$A == $B", "x < same(a, b)\n", "x < (a == b)\n"),
        ("a.py", "return $A", "return check($A)", "def f(): return 1, 2\n", "def f(): return check((1, 2))\n"),
        ("a.js", "double($X)", "$X * 2", "y = double(a ? b : c);\n", "y = (a ? b : c) * 2;\n"),
        ("a.ts", "need($A)", "$A.b", "x = need(a ?? b);\n", "x = (a ?? b).b;\n"),
        ("a.go", "double($X)", "$X * 2", "package a\n\nvar x = double(a + b)\n", "package a\n\nvar x = (a + b) * 2\n"),
        ("a.c", "sq($A)", "$A * $A", "int x = sq(a + 1);\n", "int x = (a + 1) * (a + 1);\n"),
        ("a.rs", "double($A)", "$A * 2", "fn f() { double(a + b); }\n", "fn f() { (a + b) * 2; }\n"),
        ("a.rs", "show($A)", "say!(1, $A * 2)", "fn f() { show(a + b); }\n", "fn f() { say!(1, (a + b) * 2); }\n"),
        ("a.rb", "double($A)", "$A * 2", "x = double(a + b)\n", "x = (a + b) * 2\n"),
        ("a.py", "$A + $B", "$A * $B", "x = a + b % c\ny = a - b + c\n", "x = a * (b % c)\ny = (a - b) * c\n"),
        ("a.js", "$A || $B", "$A ?? $B", "x = a || b && c;\n", "x = a ?? (b && c);\n"),
        ("a.ts", "or($A, 1)", "$A ?? 1", "x = or(a, 1) || b;\n", "x = (a ?? 1) || b;\n"),
        ("a.php", "double($A)", "$A * 2", "<?php\n$x = double($a + 1);\n", "<?php\n$x = ($a + 1) * 2;\n"),
        ("a.js", "old($A)", "one($A)", "if (x) old(4);\nelse old(5)\n", "if (x) one(4);\nelse one(5)\n"),
    ],
)
def test_a_place_gets_the_brackets_that_it_needs(
    bench: Bench, name: str, pattern: str, template: str, before: str, after: str
) -> None:
    assert bench.apply(by_structure(pattern, template), before, name) == after


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.js", "if (x) «old(4);→{\n    one(4);\n    two(4);\n}»\nelse «old(5);→{\n    one(5);\n    two(5);\n}»\n"),
        ("a.c", "void f() {\n  if (x) «old(1);→{\n    one(1);\n    two(1);\n  }»\n}\n"),
        ("A.java", "class A {\n  void f() {\n    while (x) «old(1);→{\n      one(1);\n      two(1);\n    }»\n  }\n}\n"),
        ("a.cpp", "void f() {\n    for (auto a : b) «old(1);→{\n        one(1);\n        two(1);\n    }»\n}\n"),
        ("a.py", "if g:« old(4)→\n    one(4)\n    two(4)»  # why\nelse:« old(5)→\n    one(5)\n    two(5)»\n"),
        ("a.py", "def f():\n  for a in b:«\told(a)→\n    one(a)\n    two(a)»\n"),
        ("a.kt", "fun f() {\n  if (a) «old(1)→{\n    one(1)\n    two(1)\n  }» else b()\n}\n"),
        ("a.kt", "fun f() {\n  when (a) {\n    1 -> «old(1)→{\n      one(1)\n      two(1)\n    }»\n  }\n}\n"),
    ],
)
def test_several_statements_in_the_place_of_one_become_a_block(bench: Bench, name: str, text: str) -> None:
    before, after = marked(text)
    end = "" if name in ("a.py", "a.kt") else ";"
    assert bench.apply(by_structure(f"old($A){end}", f"one($A){end}\ntwo($A){end}"), before, name) == after


@pytest.mark.parametrize(
    ("name", "pattern", "template", "text"),
    [
        ("a.py", "old($A)", "one($A)\ntwo($A)", "g = lambda: old(3)\n"),
        ("a.py", "old($A)", "one($A)\ntwo($A)", "if g: old(4); f()\n"),
        ("a.py", "same($A, $B)", "assert $A == $B", "x = same(a, b)\n"),
        ("a.py", "double($X)", "$X * 2", "k = double(a=1)\n"),
        ("a.py", "old($A)", "", "x = old(1)\n"),
        ("a.cs", "Double($A)", "$A * 2", "class A { int y = Double(ref c); }\n"),
        ("a.js", "old($A)", TWO, "const f = x => old(x);\n"),
        ("a.js", "old($A)", "[$A].map(f)", "a()\nold(b)\n"),
        ("a.kt", "old($A)", "one($A)\ntwo($A)", "val h = old(4)\n"),
        ("a.kt", "if ($A) $B else $C", "choose($A, { $B }, { $C })", "fun f() {\n  if (a) { b() } else { c() }\n}\n"),
        ("a.js", "if ($A) $B", "run($A, $B);", "if (a) {}\n"),
        ("a.sh", "[[ $A == $B ]]", 'test "$A" = "$B"', '[[ $a == "$b" ]]\n'),
        ("a.sh", "show $A", 'say "see $A!"', 'show "$b"\n'),
        ("a.go", "old($A)", "one($A)\ntwo($A)", "package a\n\nfunc f() {\n\tx := old(2)\n}\n"),
    ],
)
def test_a_place_whose_surroundings_would_be_read_otherwise_is_left_out(
    bench: Bench, name: str, pattern: str, template: str, text: str
) -> None:
    files, left_out = bench.edits(by_structure(pattern, template), [bench.source(text, name)])
    (said,) = (*left_out, *(edit.message for file in files for edit in file.edits))
    assert not any(file.ready for file in files)
    assert "would be read otherwise; not changed" in said or "does not parse" in said


@pytest.mark.parametrize(
    ("name", "pattern", "template", "before", "after"),
    [
        ("a.js", "const $A = old()", "const $A = fresh()", "const x = old();\n[1].map(f);\n", None),
        ("a.js", "old($A);", "fresh($A)", "old(1);\n[1].map(f);\n", "fresh(1);\n[1].map(f);\n"),
        ("a.js", "old($A)", "fresh($A);", "old(1);\nold(2)\n", "fresh(1);\nfresh(2);\n"),
        ("a.js", "old($A)", "", "a(); old(1); b();\n", "a();  b();\n"),
        ("a.js", "old($A)", "", "if (x) old(1);\nnext();\n", "if (x) {\n    \n}\nnext();\n"),
        ("A.java", "old($A);", "fresh($A)", "class A { { old(1); } }\n", "class A { { fresh(1); } }\n"),
        ("a.js", "return $A", "return check($A)", "function f() {\n  return n + 1;\n}\n", None),
        ("a.js", "if ($A) return $B", "if ($A) { f(); return $B }", "if (a) return b;\n", "if (a) { f(); return b }\n"),
        ("a.js", "var $X = $A", "var $X = { a: $A }", "var x = a;\n[1].map(f);\n", "var x = { a: a };\n[1].map(f);\n"),
    ],
)
def test_a_statement_keeps_its_end(
    bench: Bench, name: str, pattern: str, template: str, before: str, after: str | None
) -> None:
    expected = after or before.replace("old", "fresh").replace("n + 1", "check(n + 1)")
    assert bench.apply(by_structure(pattern, template), before, name) == expected


@pytest.mark.parametrize(
    ("name", "pattern", "template", "before", "after"),
    [
        ("a.py", "old($$$A)", "fresh($$$A)", "old(  a, # b\n  c,)\n", "fresh(  a, # b\n  c,)\n"),
        ("a.js", "function $F() { $$$B }", "function $F() { go(); $$$B }", "async function f() { b() }\n", None),
        ("a.js", "if ($A) { $$$B }", "if (ok($A)) { $$$B }", "if (a) { b(); } else { c(); }\n", None),
        ("a.py", "import $A", "import $A, sys", "import a, b\n", "import a, sys, b\n"),
        (
            "a.go",
            "if err != nil { return err }",
            "if err != nil { return wrap(err) }",
            "package a\n\nfunc f() error {\n\tif err != nil {\n\t\treturn err\n\t}\n}\n",
            "package a\n\nfunc f() error {\n\tif err != nil {\n\t\treturn wrap(err)\n\t}\n}\n",
        ),
        ("a.js", "if ($A) { $B }", "if ($A) { f(); }", "if (a) {\n  b();\n}\n", "if (a) {\n  f();\n}\n"),
        ("a.js", "return $A", "return check($A)", "() => { return(a) }\n", "() => { return check((a)) }\n"),
        (
            "a.php",
            "function $F($$$A) { $$$B }",
            "function $F($$$A): mixed { $$$B }",
            "<?php\nfunction f($a)  // why\n{\n    g();\n}\n",
            "<?php\nfunction f($a): mixed  // why\n{\n    g();\n}\n",
        ),
    ],
)
def test_what_pattern_and_template_share_keeps_its_bytes(
    bench: Bench, name: str, pattern: str, template: str, before: str, after: str | None
) -> None:
    expected = after or before.replace("{ b() }", "{ go(); b() }").replace("if (a)", "if (ok(a))")
    assert bench.apply(by_structure(pattern, template), before, name) == expected
