"""A rewritten place means what its template says, in the layout that it has: or it is left out."""

import pytest
from tests.server.refactor.bench import Bench, marked

from lacuna_server.refactor.rewriting.refactoring import by_structure, by_syntax

ADD = ("get($$$ARGS)", "get($$$ARGS, timeout=<<fill>>)")
RENAME = ("get($$$ARGS)", "send($$$ARGS, timeout=<<fill>>)")
NESTED = ("if $C: $$$BODY", "if $C:\n    with lock:\n        $$$BODY\n\n    done()")
OTHERWISE = "would be read otherwise; not changed"


@pytest.mark.parametrize(
    ("name", "pattern", "template", "text"),
    [
        # An addition keeps the layout of the place.
        ("a.py", *ADD, "get(a, b«, timeout=x»)\n"),
        ("a.py", *ADD, "get(«timeout=x»)\n"),
        ("a.py", *ADD, "get(a,« timeout=x,»)\n"),
        ("a.py", *ADD, "get(get«(a).b→(a, timeout=x).b, timeout=x»)\n"),
        ("a.py", *ADD, "é = [get«('👍'), get(2)→('👍', timeout=x), get(2, timeout=x)»]\n"),
        ("a.py", *ADD, "get(\n    a,  # one\n    b, «timeout=x, » # two\n)\n"),
        ("a.py", *ADD, "get(\n    a«, timeout=x»  # one\n)\n"),
        ("a.py", *ADD, "get(\r\n\ta,« timeout=x,»\r\n)\r\n"),
        # Blanks and line ends that a pattern and its template both begin with are not compared.
        ("a.py", "\n  f($X)\n", "\n  g($X)\n", "if a:\n    «f→g»( 1 )\n"),
        # Separators and comments stay where they belong.
        ("a.py", *RENAME, "«get(a, b)→send(a, b, timeout=x)»\n"),
        ("a.py", *RENAME, "«get()→send(timeout=x)»\n"),
        ("a.py", *RENAME, "«get(a,)→send(a, timeout=x)»\n"),
        ("a.py", *RENAME, "«get(get(a))→send(send(a, timeout=x), timeout=x)»\n"),
        ("a.py", *RENAME, "«get(\n    a,\n    b,  # two\n)→send(a,\n    b,  # two\n    timeout=x)»\n"),
        ("a.py", *RENAME, "«get(  # none\n)→send(# none\ntimeout=x)»\n"),
        # What is inserted comes behind the right metavariable.
        ("a.py", "$A and $A.$B", "$A and ready and $A.$B", "y = u and «ready and »u.name\n"),
        ("a.py", "m($KEYS).set($KEY)", "m($KEYS).set($KEYS, $KEY, <<fill>>)", "m(k).set(«v→k, v, x»)\n"),
        ("a.py", "foo($A, $A)", "foo($A, x, $A)", "foo(a, «x, »a)\n"),
        ("a.py", "foo($A, $B, $A)", "foo($A, $B, x, $A)", "foo(a,  b, «x, »a)\n"),
        # Indentation follows the place.
        (
            "a.py",
            *NESTED,
            "if a:\n  «b\n  if c:\n    d→with lock:\n    b\n    if c:\n      with lock:\n        d\n\n      done()\n\n"
            "  done()»\n",
        ),
        ("a.py", *NESTED, "def f():\n\tif a:\n\t\t«b\n\t\tc→with lock:\n\t\t\tb\n\t\t\tc\n\n\t\tdone()»\n"),
        ("a.py", *NESTED, "if a:\n  «b→with lock:\n    b\n\n  done()»\n"),
        ("a.py", *NESTED, "if a:\r\n    «b\r\n    c→with lock:\r\n        b\r\n        c\r\n\r\n    done()»\r\n"),
        ("a.py", *NESTED, 'if a:\n    «b = """\n  text\n"""→with lock:\n        b = """\n  text\n"""\n\n    done()»\n'),
        ("a.py", *NESTED, "if a:« b→\n    with lock:\n        b\n\n    done()»\n"),
        # A list with fewer elements keeps no comma or line break of those that are gone.
        ("a.js", "open($A, $B)", "start($B)", "«open(\n  a,\n  b,\n)→start(b)»;\n"),
        ("a.js", "open($A, $B)", "open($A)", "open(«\n  a,\n  b,\n→a»);\n"),
        ("a.js", "open($A, $B, $C)", "open($A, $C)", "open(«\n  a,\n  b,\n  c,\n→a, c»);\n"),
        ("a.js", "open($A, $$$B)", "start($$$B)", "«open(\n  a,\n  b,\n  c,\n)→start(b,\n  c)»;\n"),
        ("a.py", "[$A, $B]", "[$B]", "x = [«\n    1,\n    2,\n→2»]\n"),
        ("a.go", "f($A, $B)", "f($B)", "package a\n\nvar x = f(«\n\ta,\n\tb,\n→b»)\n"),
        ("a.js", "open($A, $B)", "open(z, $A, $B)", "open(«\n →z,» a,\n  b,\n);\n"),
        # A place gets the brackets that it needs.
        ("a.py", "double($X)", "$X * 2", "x = «double(a + b)→(a + b) * 2»\n"),
        ("a.py", "double($X)", "$X * 2", "x = 2 ** «double(n)→(n * 2)»\n"),
        ("a.py", "double($X)", "$X * 2", "x = «double(double(a) ** 2)→(a * 2) ** 2 * 2»\n"),
        ("a.py", "minus($A, $B)", "$A - $B", "«minus(a, b - c)→a - (b - c)»\n"),
        ("a.py", "same($A, $B)", "assert $A == $B", "«same(a or b, c)→assert (a or b) == c»\n"),
        ("a.py", "same($A, $B)", "assert $A == $B", "«same(lambda: 1, f)→assert (lambda: 1) == f»\n"),
        ("a.py", "same($A, $B)", "$A == $B", "x < «same(a, b)→(a == b)»\n"),
        ("a.py", "return $A", "return check($A)", "def f(): return «1, 2→check((1, 2))»\n"),
        ("a.js", "double($X)", "$X * 2", "y = «double(a ? b : c)→(a ? b : c) * 2»;\n"),
        ("a.ts", "need($A)", "$A.b", "x = «need(a ?? b)→(a ?? b).b»;\n"),
        ("a.go", "double($X)", "$X * 2", "package a\n\nvar x = «double(a + b)→(a + b) * 2»\n"),
        ("a.c", "sq($A)", "$A * $A", "int x = «sq→(a + 1) * »(a + 1);\n"),
        ("a.rs", "double($A)", "$A * 2", "fn f() { «double(a + b)→(a + b) * 2»; }\n"),
        ("a.rs", "show($A)", "say!(1, $A * 2)", "fn f() { «show(a + b)→say!(1, (a + b) * 2)»; }\n"),
        ("a.rb", "double($A)", "$A * 2", "x = «double(a + b)→(a + b) * 2»\n"),
        ("a.py", "$A + $B", "$A * $B", "x = a «+ b % c\ny = a - b +→* (b % c)\ny = (a - b) *» c\n"),
        ("a.js", "$A || $B", "$A ?? $B", "x = a «|| b && c→?? (b && c)»;\n"),
        ("a.ts", "or($A, 1)", "$A ?? 1", "x = «or(a, 1)→(a ?? 1)» || b;\n"),
        ("a.php", "double($A)", "$A * 2", "<?php\n$x = «double($a + 1)→($a + 1) * 2»;\n"),
        ("a.js", "old($A)", "one($A)", "if (x) «old(4);\nelse old→one(4);\nelse one»(5)\n"),
        ("a.js", "double($X)", "$X * 2", "«double({ a: 1 })→({ a: 1 }) * 2»;\n"),
        ("a.js", "double($X)", "$X.b", "«double(class {})→(class {}).b»;\n"),
        ("a.js", "double($X)", "$X()", "«double(function () {})→(function () {})()»;\n"),
        ("a.js", "double($X)", "$X.b", "f = () => «double({ a: 1 })→({ a: 1 }).b»;\n"),
        ("a.js", "double($X)", "$X ** 2", "r = «double(-a)→(-a) ** 2»;\n"),
        ("a.js", "double($X)", "$X.b", "r = «double(a++)→(a++).b»;\n"),
        ("a.js", "double($X)", "async () => { $X }", "r = «double(a)→(async () => { a })» * 2;\n"),
        ("a.js", "double($X)", "$X, 1", "r = «double(a)→(a, 1)» * 2;\n"),
        ("a.js", "double($X)", "z($X)", "r = «double→z»(x => x);\n"),
        ("a.js", "double($X)", "1 ? $X : 2", "r = «double(x => x)→1 ? x => x : 2»;\n"),
        ("a.c", "dbl($X)", "2 * $X", "int f() { r = «dbl→2 * »(a = b); }\n"),
        ("A.java", "dbl($X)", "2 * $X", "class A { int r = «dbl→2 * »(a = b); }\n"),
        ("A.cs", "dbl($X)", "$X * 2", "class A { int F() { r = «dbl(() => {})→(() => {}) * 2»; } }\n"),
        ("A.cs", "dbl($X)", "2 * $X", "class A { int F() { r = «dbl→2 * »(a = b); } }\n"),
        ("a.rs", "double($X)", "$X < 1", "fn f() { let r = «double(a as usize)→(a as usize) < 1»; }\n"),
        ("a.rs", "double($X)", "$X == 1", "fn f() { let r = «double(a < b)→(a < b) == 1»; }\n"),
        ("a.rs", "double($X)", "$X == 1", "fn f() { «double(match a { _ => 1 })→(match a { _ => 1 }) == 1»; }\n"),
        ("a.py", "double($X)", "-$X", "r = «double→-»(lambda: 1)\n"),
        ("a.py", "double($X)", "$X", "r = «double→»(x := 1)\n"),
        ("a.py", "double($X)", "await $X", "async def f():\n    r = «double→await »(-a)\n"),
        ("a.py", "double($X)", "await $X", "async def f():\n    r = «double→await »(await a)\n"),
        # A statement keeps its end.
        ("a.js", "const $A = old()", "const $A = fresh()", "const x = «old→fresh»();\n[1].map(f);\n"),
        ("a.js", "old($A);", "fresh($A)", "«old→fresh»(1);\n[1].map(f);\n"),
        ("a.js", "old($A)", "fresh($A);", "«old(1);\nold(2)→fresh(1);\nfresh(2);»\n"),
        ("a.js", "old($A)", "", "a(); «old(1);→» b();\n"),
        ("a.js", "old($A)", "", "if (x) «old(1);→{\n    \n}»\nnext();\n"),
        ("A.java", "old($A);", "fresh($A)", "class A { { «old→fresh»(1); } }\n"),
        ("a.js", "return $A", "return check($A)", "function f() {\n  return «n + 1→check(n + 1)»;\n}\n"),
        ("a.js", "if ($A) return $B", "if ($A) { f(); return $B }", "if (a) «return b;→{ f(); return b }»\n"),
        ("a.js", "var $X = $A", "var $X = { a: $A }", "var x = «a→{ a: a }»;\n[1].map(f);\n"),
        # What pattern and template share keeps its bytes.
        ("a.py", "old($$$A)", "fresh($$$A)", "«old→fresh»(  a, # b\n  c,)\n"),
        ("a.js", "function $F() { $$$B }", "function $F() { go(); $$$B }", "async function f() { «go(); »b() }\n"),
        ("a.js", "if ($A) { $$$B }", "if (ok($A)) { $$$B }", "if («a→ok(a)») { b(); } else { c(); }\n"),
        ("a.py", "import $A", "import $A, sys", "import a, «sys, »b\n"),
        (
            "a.go",
            "if err != nil { return err }",
            "if err != nil { return wrap(err) }",
            "package a\n\nfunc f() error {\n\tif err != nil {\n\t\treturn «err→wrap(err)»\n\t}\n}\n",
        ),
        ("a.js", "if ($A) { $B }", "if ($A) { f(); }", "if (a) {\n  «b→f»();\n}\n"),
        ("a.js", "return $A", "return check($A)", "() => { return«(a)→ check((a))» }\n"),
        (
            "a.php",
            "function $F($$$A) { $$$B }",
            "function $F($$$A): mixed { $$$B }",
            "<?php\nfunction f($a)«: mixed»  // why\n{\n    g();\n}\n",
        ),
        # A comment moves with the piece next to it.
        ("a.js", "old($A, $B)", "fresh($B, $A)", "«old(1, /* p */ 2)→fresh(/* p */ 2, 1)»;\n"),
        ("a.js", "old($A, $B)", "fresh($B, $A)", "«old(1 /* p */, 2 /* q */)→fresh(2 /* q */, 1 /* p */)»;\n"),
        ("a.js", "old($A, $B)", "fresh($A, $B)", "«old→fresh»(1, // p\n  2);\n"),
        (
            "a.js",
            "old($A, $B)",
            "fresh($B, $A)",
            "«old(old(1, /* p */ 2), /* q */ 3)→fresh(/* q */ 3, fresh(/* p */ 2, 1))»;\n",
        ),
        ("a.py", "old($A, $B)", "fresh($B, $A)", "«old(1,  # p\r\n    2)→fresh(2, 1)  # p»\r\n"),
        ("a.py", "old($A, $B)", "fresh($A, $B)", "if x: «old→fresh»(1,  # p\n  2  # q\n    )\n"),
        (
            "a.py",
            "if $C:\n    $$$B",
            "with t():\n    if $C:\n        $$$B",
            "«if a:  # p\n    # q\n→with t():\n    if a:\n        # p\n        # q\n    »    b()\n    # r\n",
        ),
        # Blanks within an element are text.
        ("a.html", "<b>$$$A</b>", "<i><b>$$$A</b></i>", "<p>a <«b> x </b→i><b> x </b></i»> c</p>\n"),
        ("a.html", "<b>$$$A</b>", "<i><b>$$$A</b></i>", "<«b></b→i><b></b></i»>\n"),
        (
            "a.tsx",
            "<b>$$$A</b>",
            "<W>\n  <b>$$$A</b>\n</W>",
            "const a = (\n  <«b>\n    {d} e\n  </b→W>\n    <b>\n      {d} e\n    </b>\n  </W»>\n);\n",
        ),
    ],
)
def test_a_place_becomes_what_its_template_says(
    bench: Bench, name: str, pattern: str, template: str, text: str
) -> None:
    before, after = marked(text)
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
    ("name", "pattern", "template", "text", "reason"),
    [
        # It would lose something.
        ("a.js", "old($A, $B)", "fresh($B)", "old(1 /* p */, 2);\n", "no place for its comment '/* p */'"),
        ("a.js", "old($A, $B)", "fresh($A)", "old(1, f(/* p */ 2));\n", "no place for its comment '/* p */'"),
        ("a.js", "old()", "fresh", "old(/* p */);\n", "no place for its comment '/* p */'"),
        ("a.js", "old($A, $B)", "fresh($B, $A)", "old(1, // p\n  2);\n", "no place for its comment '// p'"),
        ("a.js", "old($A)", "return $A", "x = old(\n  // p\n  1);\n", "no place for its comment '// p'"),
        ("a.js", "function $F() { $$$B }", "$F = () => { $$$B }", "async function f() {}\n", "not name its 'async'"),
        ("a.py", "raise $E", "fail($E)", "raise a from b\n", "does not name its 'from'"),
        ("a.py", "assert $A", "check($A)", "assert a, b\n", "does not name its 'b'"),
        ("a.js", "if ($A) { $$$B }", "ok($A, () => { $$$B })", "if (a) {} else {}\n", "does not name its 'else'"),
        ("a.rb", "$A.new", "kept($A.new)", "Stack.new { |stack| stack }\n", "does not name its '{', "),
        ("a.js", "for (const $A of $B) $C", "each($B, $C)", "for await (const a of b) c();\n", "not name its 'await'"),
        ("a.c", "old($A, $B);", "fresh($B, $A);", "void f() {\n    old(1, CAST b);\n}\n", "does not parse"),
        # Its surroundings would be read otherwise.
        ("a.py", "old($A)", "one($A)\ntwo($A)", "g = lambda: old(3)\n", OTHERWISE),
        ("a.py", "old($A)", "one($A)\ntwo($A)", "if g: old(4); f()\n", OTHERWISE),
        ("a.py", "same($A, $B)", "assert $A == $B", "x = same(a, b)\n", "does not parse"),
        ("a.py", "double($X)", "$X * 2", "k = double(a=1)\n", OTHERWISE),
        ("a.py", "old($A)", "", "x = old(1)\n", "does not parse"),
        ("a.cs", "Double($A)", "$A * 2", "class A { int y = Double(ref c); }\n", OTHERWISE),
        ("a.js", "old($A)", "one($A);\ntwo($A);", "const f = x => old(x);\n", OTHERWISE),
        ("a.js", "old($A)", "[$A].map(f)", "a()\nold(b)\n", OTHERWISE),
        ("a.kt", "old($A)", "one($A)\ntwo($A)", "val h = old(4)\n", OTHERWISE),
        (
            "a.kt",
            "if ($A) $B else $C",
            "choose($A, { $B }, { $C })",
            "fun f() {\n  if (a) { b() } else { c() }\n}\n",
            OTHERWISE,
        ),
        ("a.js", "if ($A) $B", "run($A, $B);", "if (a) {}\n", OTHERWISE),
        ("a.sh", "[[ $A == $B ]]", 'test "$A" = "$B"', '[[ $a == "$b" ]]\n', OTHERWISE),
        ("a.sh", "show $A", 'say "see $A!"', 'show "$b"\n', OTHERWISE),
        ("a.go", "old($A)", "one($A)\ntwo($A)", "package a\n\nfunc f() {\n\tx := old(2)\n}\n", OTHERWISE),
    ],
)
def test_a_place_that_cannot_be_rewritten_is_reported_and_not_changed(
    bench: Bench, name: str, pattern: str, template: str, text: str, reason: str
) -> None:
    files, left_out = bench.edits(by_structure(pattern, template), [bench.source(text, name)])
    assert not files
    assert len(left_out) == 1
    assert reason in left_out[0]


def test_other_places_are_rewritten_around_one_that_is_not_changed(bench: Bench) -> None:
    source = bench.source("old(old(/* p */), 1);\nold(2, 3);\n", "a.js")
    (file,), left_out = bench.edits(by_structure("old($A, $B)", "fresh($B, $A)"), [source])
    assert file.rewritten(source.data) == b"fresh(1, old(/* p */));\nfresh(3, 2);\n"
    assert left_out == []
    (file,), left_out = bench.edits(by_structure("old($$$A)", "fresh($$$A)"), [source])
    assert file.rewritten(source.data) == b"fresh(fresh(/* p */), 1);\nfresh(2, 3);\n"


def test_lines_inserted_after_a_node_follow_its_comment(bench: Bench) -> None:
    refactoring = by_syntax("(import_statement) @after", "\nimport b", "python")
    assert bench.apply(refactoring, "import a  # p\nc = 1\n") == "import a  # p\nimport b\nc = 1\n"
