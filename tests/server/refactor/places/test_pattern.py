"""Patterns are read in the contexts in which such code can stand, and found there."""

import pytest
from tests.server.refactor.bench import Bench

from lacuna_model.core.errors import RequestError
from lacuna_model.languages import parsing
from lacuna_server.refactor.rewriting.refactoring import by_structure


# Of each text, what is found is between marks.
@pytest.mark.parametrize(
    ("name", "text", "pattern"),
    [
        ("a.go", 'package a\n\nvar x = «errors.New("x")»\n', "errors.New($A)"),
        ("a.go", "package a\n\nfunc f() {\n\t«if err != nil {\n\t\tg()\n\t}»\n}\n", "if err != nil { $$$A }"),
        ("a.go", "package a\n\n«func f() error {\n\treturn nil\n}»\n", "func $F() error { $$$B }"),
        ("a.go", "package a\n\ntype T struct{ n «[]int» }\n", "[]$T"),
        ("a.go", 'package a\n\n«import "errors"»\n', "import $A"),
        ("A.java", "class A { void f() { «n.trim()»; } }\n", "$A.trim()"),
        ("A.java", "class A { void f() { «for (int i : n) { log(i); }» } }\n", "for ($T $X : $Y) { $$$B }"),
        ("A.java", "class A { void f() { «if (n) { return; }» } }\n", "if ($A) { $$$B }"),
        ("A.java", "class A { void f() { «if (n) { return; }» } }\n", "if ($A) $B"),
        ("A.java", "«import a.B;»\nclass A {}\n", "import $A;"),
        ("A.java", "class A { «@Old» int n = 1; }\n", "@Old"),
        ("A.cs", "class C { void F() { «foreach (var a in b) { G(a); }» } }\n", "foreach (var $A in $B) { $$$C }"),
        ("A.cs", "using A;\nclass C { void F() { «using (x) { G(); }» } }\n", "using ($A) { $$$B }"),
        ("A.cs", "«using A;»\nclass C { void F() { using (x) { G(); } } }\n", "using $A;"),
        ("A.cs", "class C { void F() { «throw new E()»; } }\n", "throw new $E()"),
        ("A.cs", "class C { «public int N { get; set; }» }\n", "public $T $N { get; set; }"),
        ("a.rs", "«use a::b;»\n", "use $A;"),
        ("a.rs", "fn f() { let x = «vec![a.b, 2]»; }\n", "vec![$A, $B]"),
        ("a.rs", "fn f() { «match x { Some(y) => y, None => 0 }»; }\n", "match $A { $$$B }"),
        ("a.rs", "struct S { n: «Vec<u8>» }\n", "Vec<$T>"),
        ("a.rs", "«#[test]»\nfn f() {}\n", "#[test]"),
        ("a.php", "<?php\n«foreach ($a as $b) { echo $b; }»\n", "foreach ($A as $B) { $$$C }"),
        ("a.php", "<?php\nclass A { «public function f($a) { g(); }» }\n", "public function $F($$$A) { $$$B }"),
        ("a.php", "<?php\n$x = «$_GET['x']»;\n", "$_GET[$A]"),
        ("a.c", "int f(int a) { «free(a);» }\n", "free($A);"),
        ("a.c", "int f(int a) { a = «b * c»; }\n", "$A * $B"),
        ("a.c", "«struct s { int n; };»\n", "struct $A { $$$B };"),
        ("a.cpp", "void f() { auto a = «std::move(b)»; }\n", "std::move($A)"),
        ("a.cpp", "void f() { «for (auto x : a) { g(x); }» }\n", "for (auto $A : $B) { $$$C }"),
        ("a.cpp", "«namespace n { class A { int m; }; }»\n", "namespace $A { $$$B }"),
        ("a.kt", "«class A {\n    val n = x\n}»\nfun f() {}\n", "class $A { $$$B }"),
        ("a.kt", "fun f(a: Int) {\n    «when (a) { 1 -> b() }»\n}\n", "when ($A) { $$$B }"),
        ("a.kt", "fun f(a: Int) {\n    «a?.let { c(it) }»\n}\n", "$A?.let { $$$B }"),
        ("a.kt", "class A {\n    val n: «List<Int>» = x\n}\n", "List<$T>"),
        ("a.ts", "«interface A { b: string }»\n", "interface $A { $$$B }"),
        ("a.ts", "class B { private c: «Map<string, A>»; }\n", "Map<$A, $B>"),
        ("a.ts", "const e = «{ f: 1 }»;\n", "{ f: $A }"),
        ("a.js", "««f(a)»(b)»\n", "$A($B)"),
        ("a.py", "try:\n    a()\n«except B:\n    c()»\n", "except $E: $$$X"),
        ("a.py", "«f(a=1)»\n", "f($A=$B)"),
        ("a.py", "a()\n«b(1)\nc()»\nb(2)\n", "b($A)\nc()"),
        ("a.toml", 'a = 1\n«b = "c"»\n', "b = $A"),
        ("a.json", '{"a": {«"b": 1»}}', '"b": $A'),
        ("a.yaml", "a:\n  «image: b»\n", "image: $A"),
        ("a.css", "a { «color: red»; }\n", "color: $A"),
        ("a.css", "a { «margin: 0 1px»; }\n", "margin: $$$A"),
        ("a.css", "a { width: «calc(1px + 2%)»; }\n", "calc($$$A)"),
        ("a.css", "«@keyframes a { from { top: 0; } }»\n", "@keyframes $A { $$$B }"),
        ("a.sh", "«if a; then\n  b\nfi»\n", "if $A; then $$$B; fi"),
        ("a.sh", "«for a in b; do c; done»\n", "for $A in $$$B\ndo\n$$$C\ndone"),
        ("a.sh", "«f() {\n  a\n}»\n", "$F() { $$$A; }"),
        ("a.sh", "«case $1 in\n  a) b ;;\nesac»\n", "case $A in $$$B esac"),
        ("a.rb", "«case a\nwhen 1 then b\nend»\n", "case $A\n$$$B\nend"),
        ("a.rb", "a = «{ b => 1 }»\n", "{ $$$A }"),
        ("a.rb", "a.each «{ |b| c }»\n", "{ |$A| $$$B }"),
        ("a.html", "<p>«<b>c</b>»</p>\n", "<b>$$$A</b>"),
        ("a.tsx", "const a = «<A b={c} />»;\n", "<$T $$$A />"),
        # Commas count, and a statement may keep its end.
        ("a.py", "grid[1,]\n«grid[2]»\n", "grid[$A]"),
        ("a.py", "«f(1,)»\n", "f($A)"),
        ("a.js", "[a,,];\n«[b,]»;\n", "[$A]"),
        ("a.js", "a?.b\n«a.b»\n", "a.b"),
        ("a.py", "«a + a»\na + b\n", "$A + $A"),
        ("a.py", "if a:\n    b()\nelif c:\n    d()\n", "if $A:\n    $$$B\nelse:\n    $$$C"),
        ("a.js", "«const a = b;»\n«const c = d»\n", "const $A = $B;"),
        ("a.js", "«const a = b»;\n«const c = d»\n", "const $A = $B"),
        ("a.rs", "fn f() { g!(a, b); }\n", "g!($A)"),
    ],
)
def test_a_pattern_finds_code_where_it_can_stand(bench: Bench, name: str, text: str, pattern: str) -> None:
    plain, begun, wanted = "", list[int](), list[tuple[int, int]]()
    for character in text:
        if character == "«":
            begun.append(len(plain))
        elif character == "»":
            wanted.append((begun.pop(), len(plain)))
        else:
            plain += character
    matches = bench.matches(bench.source(plain, name), pattern)
    assert [(match.start, match.end) for match in matches] == sorted(wanted, key=lambda span: (span[0], -span[1]))


def test_a_metavariable_within_a_word_is_refused_if_the_template_uses_it(bench: Bench) -> None:
    source = bench.source('a = "x $A"\n')
    with pytest.raises(RequestError, match=r"\$A stands within a word, string or comment of the pattern"):
        bench.edits(by_structure('"x $A"', "f($A)"), [source])
    assert bench.apply(by_structure('"x $A"', "f()"), source.text) == "a = f()\n"


def test_a_place_that_does_not_parse_is_left_out_and_named(bench: Bench) -> None:
    source = bench.source("old(1);\nold(2 3);\n", "a.js")
    (file,), left_out = bench.edits(by_structure("old($A)", "fresh($A)"), [source])
    assert file.rewritten(source.data) == b"fresh(1);\nold(2 3);\n"
    assert left_out == ["a.js:2:0: the code at this place does not parse; not changed"]


def test_a_call_beside_an_error_keeps_what_may_belong_to_it(bench: Bench) -> None:
    head = "actual class Stamp\npublic actual constructor(public actual val day: Day) : Comparable<Stamp> {\n"
    text = head + "    val t = 1\n}\n\nfun build() {\n    parse({ one() }) { two() }\n    parse(3)\n}\n"
    files, _ = bench.edits(by_structure("parse($$$A)", "read($$$A)"), [bench.source(text, "a.kt")])
    made = files[0].rewritten(text.encode()).decode() if files else text
    assert "{ two() }" in made


def test_a_node_that_the_parser_has_supplied_is_no_place(bench: Bench) -> None:
    source = bench.source("static const double\n#ifdef A\nbig[] = { 1 };\n#endif  // or else\n", "a.c")
    assert bench.matches(source, "else { $$$A }") == []


def test_a_text_that_never_finishes_leaves_its_file_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "LEAST_NS", parsing.LEAST_NS // 10)
    good, bad = bench.source("old(1);\n", "a.tsx"), bench.source("old(2);\n<a {{b:>c:d(e f)\n", "hang.tsx")
    files, left_out = bench.edits(by_structure("old($A)", "fresh($A)"), [bad, good])
    assert [file.path for file in files] == ["a.tsx"]
    assert len(left_out) == 1
    assert left_out[0].startswith("hang.tsx")
    without_place = bench.source(bad.text.replace("old", "new"), "hang.tsx")  # which is not even parsed
    assert bench.edits(by_structure("old($A)", "fresh($A)"), [without_place, good]) == (files, [])
    with pytest.raises(RequestError, match="the pattern is not tsx"):
        bench.matches(good, "<a {{b:>c:d(e f)")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(" * 100_000, "the pattern has 100000 characters; at most 4000 are read"),
        ("f(" * 500 + ")" * 500, "the pattern has more than 60 nodes within each other"),
        ("[" * 2000 + "]" * 2000, "does not parse as"),
        ("x + " * 500 + "x", "the pattern has more than 60 nodes within each other"),
        ("$A, " * 500, "the pattern has 500 metavariables; at most 50 are read"),
        ("(" * 2000, "does not parse as"),
    ],
)
def test_a_pattern_over_a_limit_is_refused_in_one_line(bench: Bench, pattern: str, said: str) -> None:
    with pytest.raises(RequestError, match=said) as refused:
        bench.edits(by_structure(pattern, "x"), [bench.source("x = 1\n")])
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_code_that_is_nested_too_deeply_is_left_out(bench: Bench) -> None:
    files, left_out = bench.edits(by_structure("f($A)", "g($A)"), [bench.source("f(" * 400 + "1" + ")" * 400 + "\n")])
    assert not files
    assert left_out[0].endswith("the code has too many nodes within or beside each other to be searched; not changed")
