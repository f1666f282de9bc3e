"""Patterns are read in the contexts in which such code can stand, and found there."""

import pytest
from tests.server.refactor.bench import Bench

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.rewriting.refactoring import by_structure

GO = """\
package a

import "errors"

type T struct{ n []int }

func f() error {
	if err != nil {
		return nil
	}
	return errors.New("x")
}
"""
JAVA = """\
import a.B;
class A {
    @Old int n = 1;
    void f() {
        for (int i : n) { log(i); }
        if (n) { return; }
        n.trim();
    }
}
"""
CSHARP = """\
using A;
class C {
    public int N { get; set; }
    void F() {
        foreach (var a in b) { G(a); }
        using (x) { G(); }
        throw new E();
    }
}
"""
KEYFRAMES = "@keyframes a { from { top: 0; } }"
RUST = """\
use a::b;
#[test]
fn f() {
    let x = vec![a.b, 2];
    match x { Some(y) => y, None => 0 };
}
struct S { n: Vec<u8> }
"""
PHP = """\
<?php
class A {
    public function f($a) {
        foreach ($a as $b) { echo $b; }
        return $_GET['x'];
    }
}
"""
C = """\
#include <a.h>
struct s { int n; };
int f(int a) {
    free(a);
    if (a) { return 1; }
    a = b * c;
    return 0;
}
"""
CPP = """\
namespace n { class A { int m; }; }
void f() {
    auto a = std::move(b);
    for (auto x : a) { g(x); }
    std::vector<int> v;
}
"""
KOTLIN = """\
class A {
    val n: List<Int> = x
}
fun f(a: Int) {
    when (a) { 1 -> b() }
    a?.let { c(it) }
}
"""
TYPESCRIPT = """\
interface A { b: string }
class B { private c: Map<string, A>; d() { return this.c!; } }
const e = { f: 1 };
"""


@pytest.mark.parametrize(
    ("name", "text", "pattern", "found"),
    [
        ("a.go", GO, "errors.New($A)", ['errors.New("x")']),
        ("a.go", GO, "if err != nil { $$$A }", ["if err != nil {\n\t\treturn nil\n\t}"]),
        ("a.go", GO, "func $F() error { $$$B }", [GO[GO.index("func") : -1]]),
        ("a.go", GO, "[]$T", ["[]int"]),
        ("a.go", GO, "import $A", ['import "errors"']),
        ("A.java", JAVA, "$A.trim()", ["n.trim()"]),
        ("A.java", JAVA, "for ($T $X : $Y) { $$$B }", ["for (int i : n) { log(i); }"]),
        ("A.java", JAVA, "if ($A) { $$$B }", ["if (n) { return; }"]),
        ("A.java", JAVA, "if ($A) $B", ["if (n) { return; }"]),
        ("A.java", JAVA, "import $A;", ["import a.B;"]),
        ("A.java", JAVA, "@Old", ["@Old"]),
        ("A.cs", CSHARP, "foreach (var $A in $B) { $$$C }", ["foreach (var a in b) { G(a); }"]),
        ("A.cs", CSHARP, "using ($A) { $$$B }", ["using (x) { G(); }"]),
        ("A.cs", CSHARP, "using $A;", ["using A;"]),
        ("A.cs", CSHARP, "throw new $E()", ["throw new E()"]),
        ("A.cs", CSHARP, "public $T $N { get; set; }", ["public int N { get; set; }"]),
        ("a.rs", RUST, "use $A;", ["use a::b;"]),
        ("a.rs", RUST, "vec![$A, $B]", ["vec![a.b, 2]"]),
        ("a.rs", RUST, "match $A { $$$B }", ["match x { Some(y) => y, None => 0 }"]),
        ("a.rs", RUST, "Vec<$T>", ["Vec<u8>"]),
        ("a.rs", RUST, "#[test]", ["#[test]"]),
        ("a.php", PHP, "foreach ($A as $B) { $$$C }", ["foreach ($a as $b) { echo $b; }"]),
        ("a.php", PHP, "public function $F($$$A) { $$$B }", [PHP[PHP.index("public") : PHP.rindex("\n}")]]),
        ("a.php", PHP, "$_GET[$A]", ["$_GET['x']"]),
        ("a.c", C, "free($A);", ["free(a);"]),
        ("a.c", C, "$A * $B", ["b * c"]),
        ("a.c", C, "struct $A { $$$B };", ["struct s { int n; };"]),
        ("a.cpp", CPP, "std::move($A)", ["std::move(b)"]),
        ("a.cpp", CPP, "for (auto $A : $B) { $$$C }", ["for (auto x : a) { g(x); }"]),
        ("a.cpp", CPP, "namespace $A { $$$B }", ["namespace n { class A { int m; }; }"]),
        ("a.kt", KOTLIN, "class $A { $$$B }", [KOTLIN[: KOTLIN.index("\nfun")]]),
        ("a.kt", KOTLIN, "when ($A) { $$$B }", ["when (a) { 1 -> b() }"]),
        ("a.kt", KOTLIN, "$A?.let { $$$B }", ["a?.let { c(it) }"]),
        ("a.kt", KOTLIN, "List<$T>", ["List<Int>"]),
        ("a.ts", TYPESCRIPT, "interface $A { $$$B }", ["interface A { b: string }"]),
        ("a.ts", TYPESCRIPT, "Map<$A, $B>", ["Map<string, A>"]),
        ("a.ts", TYPESCRIPT, "{ f: $A }", ["{ f: 1 }"]),
        ("a.js", "f(a)(b)\n", "$A($B)", ["f(a)(b)", "f(a)"]),
        ("a.py", "try:\n    a()\nexcept B:\n    c()\n", "except $E: $$$X", ["except B:\n    c()"]),
        ("a.py", "f(a=1)\n", "f($A=$B)", ["f(a=1)"]),
        ("a.py", "a()\nb(1)\nc()\nb(2)\n", "b($A)\nc()", ["b(1)\nc()"]),
        ("a.toml", 'a = 1\nb = "c"\n', "b = $A", ['b = "c"']),
        ("a.json", '{"a": {"b": 1}}', '"b": $A', ['"b": 1']),
        ("a.yaml", "a:\n  image: b\n", "image: $A", ["image: b"]),
        ("a.css", "a { color: red; }\n", "color: $A", ["color: red"]),
        ("a.css", "a { margin: 0 1px; }\n", "margin: $$$A", ["margin: 0 1px"]),
        ("a.css", "a { width: calc(1px + 2%); }\n", "calc($$$A)", ["calc(1px + 2%)"]),
        ("a.css", "@keyframes a { from { top: 0; } }\n", "@keyframes $A { $$$B }", [KEYFRAMES]),
        ("a.sh", "if a; then\n  b\nfi\n", "if $A; then $$$B; fi", ["if a; then\n  b\nfi"]),
        ("a.sh", "for a in b; do c; done\n", "for $A in $$$B\ndo\n$$$C\ndone", ["for a in b; do c; done"]),
        ("a.sh", "f() {\n  a\n}\n", "$F() { $$$A; }", ["f() {\n  a\n}"]),
        ("a.sh", "case $1 in\n  a) b ;;\nesac\n", "case $A in $$$B esac", ["case $1 in\n  a) b ;;\nesac"]),
        ("a.rb", "case a\nwhen 1 then b\nend\n", "case $A\n$$$B\nend", ["case a\nwhen 1 then b\nend"]),
        ("a.rb", "a = { b => 1 }\n", "{ $$$A }", ["{ b => 1 }"]),
        ("a.rb", "a.each { |b| c }\n", "{ |$A| $$$B }", ["{ |b| c }"]),
        ("a.html", "<p><b>c</b></p>\n", "<b>$$$A</b>", ["<b>c</b>"]),
        ("a.tsx", "const a = <A b={c} />;\n", "<$T $$$A />", ["<A b={c} />"]),
    ],
)
def test_a_pattern_finds_code_where_it_can_stand(
    bench: Bench, name: str, text: str, pattern: str, found: list[str]
) -> None:
    source = bench.source(text, name)
    assert [source.slice(match.start, match.end) for match in bench.matches(source, pattern)] == found


@pytest.mark.parametrize(
    ("name", "text", "pattern", "found"),
    [
        ("a.py", "grid[1,]\ngrid[2]\n", "grid[$A]", ["grid[2]"]),
        ("a.py", "f(1,)\n", "f($A)", ["f(1,)"]),
        ("a.js", "[a,,];\n[b,];\n", "[$A]", ["[b,]"]),
        ("a.js", "a?.b\na.b\n", "a.b", ["a.b"]),
        ("a.py", "a + a\na + b\n", "$A + $A", ["a + a"]),
        ("a.py", "if a:\n    b()\nelif c:\n    d()\n", "if $A:\n    $$$B\nelse:\n    $$$C", []),
        ("a.js", "const a = b;\nconst c = d\n", "const $A = $B;", ["const a = b;", "const c = d"]),
        ("a.js", "const a = b;\nconst c = d\n", "const $A = $B", ["const a = b", "const c = d"]),
        ("a.rs", "fn f() { g!(a, b); }\n", "g!($A)", []),
    ],
)
def test_a_pattern_counts_commas_and_lets_a_statement_keep_its_end(
    bench: Bench, name: str, text: str, pattern: str, found: list[str]
) -> None:
    source = bench.source(text, name)
    assert [source.slice(match.start, match.end) for match in bench.matches(source, pattern)] == found


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


@pytest.mark.parametrize(
    ("name", "template", "before", "after"),
    [
        ("a.html", "<i><b>$$$A</b></i>", "<p>a <b> x </b> c</p>\n", "<p>a <i><b> x </b></i> c</p>\n"),
        ("a.html", "<i><b>$$$A</b></i>", "<b></b>\n", "<i><b></b></i>\n"),
        (
            "a.tsx",
            "<W>\n  <b>$$$A</b>\n</W>",
            "const a = (\n  <b>\n    {d} e\n  </b>\n);\n",
            "const a = (\n  <W>\n    <b>\n      {d} e\n    </b>\n  </W>\n);\n",
        ),
    ],
)
def test_blanks_within_an_element_are_text(bench: Bench, name: str, template: str, before: str, after: str) -> None:
    assert bench.apply(by_structure("<b>$$$A</b>", template), before, name) == after


def test_a_text_that_never_finishes_leaves_its_file_out(bench: Bench) -> None:
    good, bad = bench.source("old(1);\n", "a.tsx"), bench.source("old(2);\n<a {{b:>c:d(e f)\n", "hang.tsx")
    files, left_out = bench.edits(by_structure("old($A)", "fresh($A)"), [bad, good])
    assert [file.path for file in files] == ["a.tsx"]
    assert len(left_out) == 1
    assert left_out[0].startswith("hang.tsx")
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
