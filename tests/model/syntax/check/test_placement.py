"""What a grammar takes and the language does not: found at a fill, and never held against a text that is right."""

import pytest
from tests.model.syntax.drive import require
from tree_sitter import Node, Parser

from lacuna_model.languages.registry import LANGUAGES
from lacuna_model.syntax import Language, parses
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.placement import placement_in

MISPLACED = {
    "c: a statement outside of every function": ("c", "int a;\n", "if (a) b();", "\nint c;\n"),
    "c: an assignment outside of every function": ("c", "int a;\n", "a = 1;", "\nint c;\n"),
    "c: a call of a member outside of every function": ("c", "int a;\n", "b->c(1);", "\nint c;\n"),
    "c: a number outside of every function": ("c", "int a;\n", "1 + b(c);", "\nint c;\n"),
    "c: a function that ends too early": ("c", "int f() {\n  int a = 1;\n", "}", "\n  return a;\nint c;\n"),
    "c: a function without parameters": ("c", "int a;\n", "b name {", "\n  a = 1;\n}\n"),
    "c: a word of the language as a name": ("c", "int f(int a)\n", " x int y", "\n{\n  return a;\n}\n"),
    "c: an unknown directive": ("c", "", "#ifacute", " NDEBUG\nint a;\n"),
    "c: a name between strings": ("c", "void f() {\n", '  g("a" b "c");', "\n}\n"),
    "c: a string over the end of a line": ("c", "void f() {\n", '  g("\\n a\n  ");', "\n}\n"),
    "c: words behind the parameters": ("c", "int f() ", "g h", " {\n  return 1;\n}\n"),
    "c: a call behind the parameters": ("c", "int f() ", "g(h)", " {\n  return 1;\n}\n"),
    "cpp: a block behind parameters": ("cpp", "void f() {\n", "  g(int a = 0) {", "\n    b();\n  }\n}\n"),
    "c: a block behind a call": ("c", "void f() {\n", "  g (a) {", "\n    b();\n  }\n}\n"),
    "c: a variable as a type": ("c", "void f() {\n  a = 1;\n", "  a b;", "\n}\n"),
    "cpp: a variable as a type": ("cpp", "void f(string a) {\n  a.g();\n", "  a b;", "\n}\n"),
    "cpp: a block in a namespace": ("cpp", "namespace a {\n", "{", "\n  int x;\n}\n}\n"),
    "cpp: a return between conditions": ("cpp", "#ifdef A\n", "return 1;", "\n#endif\nint a;\n"),
    "javascript: continue without a loop": ("javascript", "function f() {\n  ", "continue;", "\n}\n"),
    "javascript: break in a function of a loop": ("javascript", "for (;;) {\n  f(() => {", "break;", "});\n}\n"),
    "javascript: a constant without a value": ("javascript", "function f() {\n  ", "const x;", "\n}\n"),
    "javascript: try alone": ("javascript", "function f() {\n  ", "try { g(); }", "\n}\n"),
    "javascript: an object as a statement": ("javascript", "function f() {\n  ", "{a: 1, b};", "\n}\n"),
    "javascript: super in a function": ("javascript", "class A extends B {}\n", "function f() { super(1); }", "\n"),
    "javascript: an object at the start of a statement": (
        "javascript",
        "function f() {\n  ",
        "{a: 1, b}.c();",
        "\n}\n",
    ),
    "javascript: a class that is compared": ("javascript", "let a = 1;\n", "class B {} > (a);", "\n"),
    "javascript: super called in a method": ("javascript", "class A extends B {\n", "c() { super(); }", "\n}\n"),
    "javascript: an assignment to a condition": ("javascript", "f(", "a && b = c", ");\n"),
    "javascript: an assignment to an operator": ("javascript", "f(", "typeof a = b", ");\n"),
    "javascript: an object with a hole": ("javascript", "f({ a, ", ",", " b });\n"),
    "javascript: a call with a hole": ("javascript", "f(a, ", ",", " b);\n"),
    "javascript: a string in two lines": ("javascript", "let a = ", "'b\n ';", "\n"),
    "javascript: await in a function": ("javascript", "import a from 'a'\nfunction f() {\n", "  await a()", "\n}\n"),
    "javascript: await in a script": ("javascript", "const a = require('a')\n", "await a()", "\n"),
    "javascript: unknown flags": ("javascript", "let a = ", "/b/gx;", "\n"),
    "javascript: a flag twice": ("javascript", "let a = ", "/b/gg;", "\n"),
    "javascript: the constructor of an heir": ("javascript", "", "class A {", "\n  constructor() { super(); }\n}\n"),
    "typescript: members with commas": ("typescript", "class A {\n", "  a: b, c: d", "\n}\n"),
    "typescript: a method that may be missing": ("typescript", "f({ a, ", "b?() {}", " });\n"),
    "typescript: what must be given last": ("typescript", "function f(", "a?: b, c: d", ") {}\n"),
    "typescript: a condition for nothing": ("typescript", "function f() {\n", "  if (a);", "\n}\n"),
    "java: a string in two lines": ("java", "class A {\n  String a = ", '"b\n  ";', "\n}\n"),
    "java: an unknown escape": ("java", "class A {\n  String a = ", '"b\\ c";', "\n}\n"),
    "java: a class with another name": ("java", "", "class B {", "\n  int x;\n  int y;\n  A() {}\n}\n"),
    "rust: an unknown escape": ("rust", "fn f() {\n    g(", '"\\q"', ");\n}\n"),
    "go: an unknown escape": ("go", "package a\n\n", 'var b = "\\q"', "\n"),
    "go: a field that is declared": ("go", "package a\n\nfunc f() {\n", "\tb.c := 1", "\n}\n"),
    "go: a field of a loop": ("go", "package a\n\nfunc f() {\n", "\tfor b.c := range d {\n\t}", "\n}\n"),
    "c: a number between conditions": ("c", "#ifdef A\n", "1 + b(c);", "\n#endif\nint a;\n"),
    "c: a name in a number's type": ("c", "int a;\n", "unsigned b c;", "\n"),
    "c: a field without a name": ("c", "struct a {\n", "  b; c;", "\n};\n"),
    "c: a structure with two names": ("c", "int a;\n", "struct b c", "\n{\n  int d;\n}\n;"),
    "c: a parameter without a name": ("c", "int f(", "b, ", "char *c)\n{\n  return 1;\n}\n"),
    "c: a function in a function": ("c", "void f() {\n", "  b c() {", "\n    d();\n  }\n}\n"),
    "c: a parameter behind all others": ("c", "int f(int a, ", "..., ", "int b);\n"),
    "c: declarations behind a head without parameters": ("c", "", "a f() b;", " int c; {\n  return 1;\n}\n"),
    "c: a name in the next line": ("c", "#define", "\n", "A 1\nint a;\n"),
    "c: a value in the next line": ("c", "#define A", "\n ", "1\nint a;\n"),
    "c: a variable that is declared as a type": ("c", "void f() {\n  int *a, b;\n", "  a c;", "\n}\n"),
    "c: a function as a type": ("c", "void f() {\n  a(1);\n", "  a b;", "\n}\n"),
    "c: a type as the argument of a member": ("c", "void f() {\n", "  a.b(int);", "\n}\n"),
    "c: a variable as the type of a function": ("c", "void f() {\n  if (a == 1) {}\n", "  a b();", "\n}\n"),
    "cpp: a destructor of another class": ("cpp", "class A {\n  ", "~B();", "\n};\n"),
    "cpp: a member without parameters": ("cpp", "class A {\n", "  b c {", "\n    d = 1;\n  }\n};\n"),
    "cpp: two declarations of a template": ("cpp", "", "template <class T> void f(T a), g;", "\n"),
    "cpp: a parameter behind all others": ("cpp", "int f(int a, ", "..., ", "int b);\n"),
    "cpp: an exception outside of every function": ("cpp", "namespace a {\n", "throw 1;", "\n}\n"),
    "javascript: what cannot be counted": ("javascript", "let a = ", "b---- c", ";\n"),
    "javascript: an assignment to a sum": ("javascript", "f(", "(a + b) = c", ");\n"),
    "javascript: an object that begins with a hole": ("javascript", "f({", ", ", "a });\n"),
    "javascript: a pattern that begins with a hole": ("javascript", "let {", ", ", "a } = b;\n"),
    "javascript: a static method of an object": ("javascript", "f({ ", "static ", "a() {} });\n"),
    "javascript: a call that begins with a hole": ("javascript", "f(", ", ", "a);\n"),
    "javascript: the end of a comment": ("javascript", "let a = 1;", " -->", "\n"),
    "javascript: a member as a parameter": ("javascript", "let a = function (", "'b'.c", ") {};\n"),
    "javascript: let as a name": ("javascript", "", "let;", "\nlet a = 1;\n"),
    "javascript: a range that runs backwards": ("javascript", "let a = ", "/[z-a]/", ";\n"),
    "typescript: a member as a parameter": ("typescript", "let a = function (", "b.c", ") {};\n"),
    "c: a directive behind a statement": ("c", "int a;\n", "int b; #if C", "\nint d;\n#endif\n"),
    "javascript: a label without a statement": ("javascript", "for (;;) {\n  ", "continue a;", "\n}\n"),
    "javascript: a label beyond a function": (
        "javascript",
        "a: for (;;) {\n  f(() => { for (;;) ",
        "break a;",
        " });\n}\n",
    ),
    "javascript: a label of a declaration": ("javascript", "let b = 1;\n", "a: const c = 1;", "\n"),
    "javascript: an arrow in the next line": ("javascript", "let a = (b)", "\n", " => b;\n"),
    "javascript: an export in a function": ("javascript", "function f() {\n", "  export const a = 1;", "\n}\n"),
    "typescript: a label of a type": ("typescript", "let b = 1;\n", "a: type C = number;", "\n"),
    "typescript: return outside of a function": ("typescript", "let a = 1;\n", "return a;", "\n"),
    "typescript: a word of the language as a name": ("typescript", "let a: number;\nlet ", "new", " = 1;\n"),
    "java: an expression as a statement": ("java", "class A {\n  void f() {\n    ", "a < b;", "\n  }\n}\n"),
    "java: a word of the language as a name": ("java", "class A {\n  ", "rod", "\n  public;\n}\n"),
    "java: a method without a type": ("java", "class A {\n  A() {}\n  public ", "b(int x)", " { return; }\n}\n"),
    "java: a body without a head": ("java", "class A {\n  ", "b {", "\n  }\n}\n"),
    "java: a public variable in a method": ("java", "class A {\n  void f() {\n    ", "private int a;", "\n  }\n}\n"),
    "java: a statement at the top": ("java", "import a.b;\n", "c.d();", "\nclass A {}\n"),
    "java: a method at the top": ("java", "import a.b;\n", "int c() { return 1; }", "\nclass A {}\n"),
    "java: a variable at the top": ("java", "import a.b;\n", "int c = 1;", "\nclass A {}\n"),
    "java: a modifier twice": ("java", "class A {\n  ", "static final", " static int x = 1;\n}\n"),
    "java: two rights of access": ("java", "class A {\n  ", "public", " private int x = 1;\n}\n"),
    "java: a variable as a branch": ("java", "class A {\n  void f() {\n    ", "if (a)", "\n    int x = 1;\n  }\n}\n"),
    "java: a label without a statement": ("java", "class A {\n  void f() {\n    for (;;) ", "break a;", "\n  }\n}\n"),
    "rust: a label without a loop": ("rust", "fn f() {\n    loop { ", "break 'a;", " }\n}\n"),
    "rust: an expression at the top": ("rust", "use a::b;\n", "c::d;", "\nfn f() {}\n"),
    "rust: a block at the top": ("rust", "#[test]\n", "{", "\n    f();\n}\n"),
    "rust: a parameter without a type": ("rust", "fn f(a: u8, ", "b<(), E>", ") {}\n"),
    "rust: chained comparisons": ("rust", "fn f() {\n    let a = ", "b < c > d", ";\n}\n"),
    "rust: self outside of an impl": ("rust", "struct A;\n", "fn f(&self) {}", "\n"),
    "rust: break without a loop": ("rust", "fn f() {\n    ", "break;", "\n}\n"),
    "go: a statement at the top": ("go", "package a\n\n", "b := 1", "\n\nfunc f() {}\n"),
    "go: two functions in a line": ("go", "package a\n\n", "func b() {} func c() {}", "\n\nfunc f() {}\n"),
    "go: an import behind a function": ("go", "package a\n\nfunc f() {}\n", 'import "b"', "\n"),
    "go: blanks in the path of an import": ("go", "package a\n\n", 'import "b c"', "\n"),
    "go: parameters with and without names": ("go", "package a\n\nfunc f(a int, ", "string", ") {}\n"),
    "go: a function that is not called": ("go", "package a\n\nfunc f() {\n\t", "defer g", "\n}\n"),
    "go: a value in the head of a block": (
        "go",
        "package a\n\nfunc f() {\n\tswitch b",
        "{}",
        " {\n\tcase c:\n\t}\n}\n",
    ),
    "go: break without a loop": ("go", "package a\n\nfunc f() {\n\t", "break", "\n}\n"),
    "go: continue in a switch": (
        "go",
        "package a\n\nfunc f() {\n\tswitch {\n\tcase b:\n\t\t",
        "continue",
        "\n\t}\n}\n",
    ),
    "go: a label without a loop": ("go", "package a\n\nfunc f() {\n\tfor {\n\t\t", "break b", "\n\t}\n}\n"),
    "go: a list without its last comma": ("go", "package a\n\nvar b = []int{\n\t1,\n\t", "2", "\n}\n"),
    "go: a brace in the next line": ("go", "package a\n\nfunc f()", "\n", "{\n}\n"),
}

IN_PLACE = {
    "c: a macro that is called": ("c", "int a;\n", 'MODULE_LICENSE("GPL");', "\nint c;\n"),
    "cpp: a macro that goes on": ("cpp", "int a;\n", "BENCHMARK(b)->Arg(1)->Arg(2);", "\nint c;\n"),
    "c: assembly": ("c", "int a;\n", '__asm__(".globl a");', "\nint c;\n"),
    "c: a macro that is a function's head": ("c", "int a;\n", "TEST(a) {\n  return;", "\n}\n"),
    "c: a macro's own assignment": ("c", "int a;\n", "DEFINE_X(int, b) = 0;", "\n"),
    "c: a statement between conditions": ("c", "void f() {\n#ifdef A\n", "  if (a) return;", "\n#endif\n}\n"),
    "c: a macro with the name of a word": ("c", "", "#define inline", "\n#ifdef const\n#undef const\n#endif\n"),
    "c: a type as an argument": ("c", "void f() {\n", "  g(int, const);", "\n}\n"),
    "c: a namespace in a header for both": ("c", "int a;\n", "namespace b {", "\nint c;\n}\n"),
    "c: a macro between strings": ("c", "void f() {\n", '  g("a" PRIu64 "c");', "\n}\n"),
    "c: a function's attribute": ("c", "int f() ", "ATTRIBUTE", " {\n  return 1;\n}\n"),
    "c: a function's attributes": ("c", "int f()", " A\n  b_c __d(e) F(g)", " {\n  return 1;\n}\n"),
    "cpp: a loop of a macro": ("cpp", "void f() {\n", "  foreach (a, b) {", "\n    c();\n  }\n}\n"),
    "c: declarations of parameters": ("c", "int f(a, b)\n", "int a;\nint b;", "\n{\n  return 1;\n}\n"),
    "c: a loop of a macro": ("c", "void f() {\n", "  list_for_each (a) {", "\n    b();\n  }\n}\n"),
    "c: a type": ("c", "void f() {\n  a *b = (a *)c;\n  a (*e)(int, a);\n  a.b = 1;\n", "  a d;", "\n}\n"),
    "c: a variable with the name of its type": ("c", "void f() {\n", "  a a; a = 1; a->b = 2;", "\n}\n"),
    "cpp: a type": ("cpp", "void f() {\n  using a = g::a;\n  a(1).b = a::c;\n", "  a d;", "\n}\n"),
    "cpp: an exported class": ("cpp", "int a;\n", "class API B {", "\n public:\n  int x;\n};\n"),
    "javascript: a label": ("javascript", "", "a: for (;;) { switch (b) { default: break; } continue a; }", "\n"),
    "javascript: a function that is called": ("javascript", "let a = 1;\n", "(function () {})();", "\n"),
    "javascript: super of a method": ("javascript", "class A extends B {\n", "c() { super.c(); }", "\n}\n"),
    "javascript: assignments": ("javascript", "", "a = b = c; a && (b = c); !(a = b); a || (() => b);", "\n"),
    "javascript: a list with a hole": ("javascript", "f([a, ", ",", " b], {c,});\n"),
    "javascript: a label of a block": ("javascript", "", "a: { break a; }", "\n"),
    "javascript: return at the top": ("javascript", "if (a) ", "return;", "\n"),
    "javascript: super in a method": ("javascript", "class A extends B {\n", "constructor() { super(); }", "\n}\n"),
    "javascript: names of words": ("javascript", "a.", "delete", "();\nexport { b as default };\n"),
    "typescript: a constant that is declared": ("typescript", "", "declare const x: number;", "\n"),
    "typescript: a constant of a module": ("typescript", "declare module 'a' {\n", "export const x: number;", "\n}\n"),
    "typescript: an export of a namespace": ("typescript", "namespace A {\n", "  export const b = 1;", "\n}\n"),
    "java: modifiers": ("java", "class A {\n  ", "@B @B(1) public static final", " int x = 1;\n}\n"),
    "java: a label": ("java", "class A {\n  void f() {\n    ", "a: for (;;) { for (;;) continue a; }", "\n  }\n}\n"),
    "java: statements": ("java", "class A {\n  A() { ", "new B(); i++; f(); a = b; /* c */ ;", "}\n}\n"),
    "java: break in a switch": ("java", "class A {\n  void f() { switch (a) { case 1: ", "break;", " } }\n}\n"),
    "java: a record's constructor": ("java", "record A(int x) {\n  ", "A { }", "\n}\n"),
    "java: a method of a file alone": ("java", "", "void main() { f(); }", "\n"),
    "java: a text block": ("java", "class A {\n  String a = ", '"""\n    b\n    """;', "\n}\n"),
    "java: escapes": ("java", "class A {\n  String a = ", '"\\n\\u00e9\\177\\\\";', "\n}\n"),
    "java: a class with the name of its constructor": ("java", "", "class A {", "\n  A() {}\n  A(int x) {}\n}\n"),
    "javascript: a string that goes on": ("javascript", "let a = ", '"b \\\n  c";', "\n"),
    "javascript: await": ("javascript", "const f = async (a) => {\n", "  await a()", "\n}\n"),
    "javascript: await in a module": ("javascript", "import a from 'a'\n", "await a()", "\n"),
    "javascript: flags": ("javascript", "let a = ", "/b/gimsuy;", "\n"),
    "javascript: a class that is constructed alone": (
        "javascript",
        "",
        "class A {",
        "\n  constructor() { this.a(); }\n}\n",
    ),
    "typescript: parameters": ("typescript", "function f(", "a: b, c?: d, ...e: f[]", ") {}\n"),
    "rust: escapes": ("rust", "fn f() {\n    g(", '"\\n\\u{1F600}\\x7f\\\n   a"', ");\n}\n"),
    "go: escapes": ("go", "package a\n\n", 'var b = "\\a\\u00e9\\177"', "\n"),
    "go: variables": ("go", "package a\n\nfunc f() {\n", "\tb, _ := c.d, 1\n\tfor c.d = range e {\n\t}", "\n}\n"),
    "c: macros between conditions": ("c", "#ifdef A\n", 'B("c");\n__asm__(".globl a");', "\n#endif\nint a;\n"),
    "c: numbers' types": ("c", "struct a {\n", "  unsigned long long int b; unsigned __int64 c; B; C(d);", "\n};\n"),
    "c: an exported structure": ("c", "int a;\n", "struct lib_EXPORT b {", "\n  int d;\n}\n;"),
    "c: parameters without names": ("c", "", "int f(void); int g(a, b *, ...); int h(VOID) { return 1; }", "\n"),
    "c: a value behind a backslash": ("c", "#define A", "(b) \\\n  ((b) + \\\n   1)", "\nint a;\n"),
    "c: a comment behind a value": ("c", "#define A", " 1 /* a\n b */", "\nint a;\n"),
    "cpp: destructors": ("cpp", "template <class T> class a::A<T> {\n  ", "~A(); void f();", "\n};\n"),
    "cpp: parameters that are expanded": ("cpp", "", "template <class... T> void f(T... a, int b);", "\n"),
    "javascript: what can be counted": ("javascript", "", "a++; --a.b; (a)++; a[0]--; a--- -b;", "\n"),
    "javascript: a comment of old": ("javascript", "let a = 1; <!-- b", "\n--> c", "\n"),
    "javascript: parameters": ("javascript", "", "function f(a, {b, c}, [d], e = 1, ...g) {}", "\n"),
    "tsx: an attribute of two lines": ("tsx", "const a = ", '<b c="d\n e"/>;', "\n"),
    "javascript: names declared once": (
        "javascript",
        "let a = 1; var b; var b;\n",
        "{ let a = 2; } (() => { const a = 3; })(); export const c = 1;",
        "\n",
    ),
    "c: a directive behind a comment": ("c", "int a;\n", "/* b */ #if C", "\nint d;\n#endif\n"),
    "rust: a macro at the top": ("rust", "use a::b;\n", "c!(d); e! { f }", "\n"),
    "rust: break with a label": ("rust", "fn f() {\n    ", "'a: { break 'a; }", "\n}\n"),
    "rust: parameters": ("rust", "trait A {\n    ", "fn f(&self, #[b] c: u8, _: &'static str);", "\n}\n"),
    "go: declarations": ("go", "package a\n\n", "var b = 1 // c", "\n\nfunc f() {}\n"),
    "go: functions in a line": ("go", "package a\n\n", "func b() {}; func c() {} /* d */", "\n"),
    "go: imports": ("go", "package a\n\n", 'import "b/c-d.e"\nimport . `f`', "\n\nfunc f() {}\n"),
    "go: parameters": ("go", "package a\n\n", "func f(a, b int, c ...string) (int, error) {}", "\n"),
    "go: calls": ("go", "package a\n\nfunc f() {\n\t", "defer func() {}()\n\tgo g[int](b)", "\n}\n"),
    "go: values in heads": (
        "go",
        "package a\n\nfunc f() {\n",
        "\tif b == (c{}) || d(c{}) {\n\t}\n\tfor range []c{{1}} {\n\t\te := c{}\n\t}",
        "\n}\n",
    ),
    "go: break and continue": (
        "go",
        "package a\n\nfunc f() {\n",
        "b:\n\tfor {\n\t\tselect {\n\t\tcase <-c:\n\t\t\tbreak\n\t\tdefault:\n\t\t\tcontinue b\n\t\t}\n\t}",
        "\n}\n",
    ),
}


def document(name: str, before: str, after: str) -> Document:
    return Document((before + after).encode(), [(len(before), len(before))], require(name))


@pytest.mark.parametrize("case", MISPLACED)
def test_misplaced_is_refused(case: str) -> None:
    name, before, fill, after = MISPLACED[case]
    assert not document(name, before, after).check([fill.encode()]).valid
    assert not document(name, before, after).check_fresh([fill.encode()]).valid


@pytest.mark.parametrize("case", IN_PLACE)
def test_in_place_is_not(case: str) -> None:
    name, before, fill, after = IN_PLACE[case]
    assert document(name, before, after).check([fill.encode()]).valid
    assert document(name, before, after).check_fresh([fill.encode()]).valid


@pytest.mark.parametrize("case", MISPLACED)
def test_an_incremental_check_sees_what_a_fresh_one_sees(case: str) -> None:
    name, before, fill, after = MISPLACED[case]
    own = document(name, before, after)
    for text in (b"", b" ", fill.encode(), b"\n", fill.encode() + b"\n"):
        assert own.check([text], thorough=True).valid == own.check_fresh([text]).valid


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES if language.rules])
def test_samples_have_nothing_out_of_place(samples: dict[str, tuple[Language, bytes]], name: str) -> None:
    language, text = samples[name]
    placement = placement_in(language, None)
    assert placement is not None
    tree = Parser(language.grammar()).parse(text)
    assert not placement.strays(tree) | placement.reserved_names(tree, text, [(0, len(text))])
    assert not placement.line_ends(tree, text)


def test_what_stands_beside_the_gap_may_stay() -> None:
    own = document("c", "START(a)\n  x = 1;\n  if (x) y();\nEND;\nint b = ", ";\n")
    assert own.check([b"2"]).valid
    assert own.check_fresh([b"2"]).valid
    assert not own.check([b"2; b = 1"]).valid


def test_what_the_gap_itself_misplaces_is_not_excused() -> None:
    own = document("rust", "use", "fmt;\n\nfn f() {}\n")
    assert not own.check([b""]).valid
    assert not own.check_fresh([b""]).valid
    assert own.check([b" "]).valid


def test_a_gap_that_took_the_head_of_a_function_excuses_no_statement() -> None:
    before, after = b"namespace a {\nint b;\n", b"\n  while (b) c();\n  return 1;\n}\n"
    places = [(len(before), len(before)), (len(before + after), len(before + after))]
    own = Document(before + after + b"\n}\n", places, require("cpp"))
    assert own.check_fresh([b"int f(int b) {", b""]).valid
    assert not own.check_fresh([b"int f(int b);", b"namespace d {"]).valid


def test_what_the_text_has_elsewhere_is_no_error() -> None:
    other = "int unrelated_%d;\n" * 200 % tuple(range(200))
    for far, valid in (("if (x) y();\n", True), ("int x;\n", False)):
        own = document("c", far + other, "\n" + other)
        assert own.check([b"if (z) y();"]).valid == valid
        assert own.check_fresh([b"if (z) y();"]).valid == valid


def test_a_gap_that_took_the_head_of_a_loop_excuses_no_break() -> None:
    own = document("java", "class A {\n  void f() {\n    ", "\n      break;\n    }\n  }\n}\n")
    assert own.check([b"for (;;) {"]).valid
    assert not own.check([b"if (a) {"]).valid
    assert not own.check_fresh([b"if (a) {"]).valid


def test_words_behind_a_fill_are_looked_at_too() -> None:
    own = document("java", "class A {\n  ", "\n\n  public int x;\n}\n")
    assert own.check([b"int y;"]).valid
    assert not own.check([b"int"]).valid


@pytest.mark.parametrize("case", MISPLACED)
def test_in_the_end_a_misplaced_fill_is_better_than_none(case: str) -> None:
    name, before, fill, after = MISPLACED[case]
    own, sound = document(name, before, after), parses((before + fill + after).encode(), require(name))
    own.widen()
    assert not own.check([fill.encode()]).valid
    assert own.displace()
    assert not own.displace()
    assert own.check([fill.encode()]).valid == sound
    assert own.check_fresh([fill.encode()]).valid == sound


def test_once_there_is_a_fill_nothing_else_may_be_misplaced() -> None:
    own = document("javascript", "function f() {\n", "\n}\n")
    own.displace()
    for fill, valid in (("continue;", True), ("const a;", False), ("a();", True), ("continue;", False)):
        assert own.check([fill.encode()]).valid == valid
        assert own.check_fresh([fill.encode()]).valid == valid


def test_a_block_near_several_places_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    language = require("javascript")
    placement = placement_in(language, None)
    assert placement is not None
    judged: list[int] = []

    def fits(scope: Node) -> bool:
        judged.append(scope.id)
        return False

    assert language.rules is not None
    monkeypatch.setitem(language.rules.predicates, "statement", fits)
    text = b"function f() {\n" + b"  a(b);\n" * 9 + b"}\n"
    tree = Parser(language.grammar()).parse(text)
    spans = [(place, place + 1) for place in range(16, 80, 9)]
    assert len(placement.strays(tree, spans)) == len(judged) == len(set(judged)) > 1
