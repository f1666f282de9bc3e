"""Names that may be declared but once: found where a fill declares one anew, never where the file did so before."""

import numpy as np
import pytest
from tests.model.syntax.drive import certain, fill, first_fill, noisy, require
from tree_sitter import Parser

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import Region
from lacuna_model.languages.registry import LANGUAGES
from lacuna_model.syntax import Language, SyntaxConstraint
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.repeated import Repeated

# A text with its gap, a fill that declares a name again, and one that does not.
REPEATED = {
    "c: a variable": ("c", "int f(void) {\n  int n = 1;\n  int ", " = 2;\n  return n;\n}\n", "n", "m"),
    "c: a variable below": ("c", "int f(void) {\n  int ", " = 2;\n  int n = 1;\n  return n;\n}\n", "n", "m"),
    "c: what is made a declaration": ("c", "int f(void) {\n  int n = 1;\n  ", "n = 2;\n}\n", "int ", "if (1) "),
    "c: a parameter in the body": ("c", "int f(char *n) {\n  ", "\n}\n", "int n;", "{ int n; }"),
    "c: a parameter": ("c", "int f(int a, char *", ") {}\n", "a", "b"),
    "c: a pointer": ("c", "void f(void) {\n  int a[2];\n  ", "\n}\n", "int b, *a;", "int b, *c;"),
    "c: a function": ("c", "int f(void) { return 1; }\n", "\n", "int f(void) { return 2; }", "int f(void);"),
    "c: two values": ("c", "int n = 1;\n", "\n", "int n = 2;", "extern int n;"),
    "c: a field": ("c", "struct s {\n  int a;\n  char ", ";\n};\n", "*a", "*b"),
    "c: a structure": ("c", "struct s { int a; };\n", "\n", "struct s { int b; };", "struct s t;"),
    "c: a member of an enumeration": ("c", "enum e { A, ", " };\n", "A", "B"),
    "c: a label": ("c", "void f(void) {\n  a: ;\n  if (1) {\n    ", "\n  }\n}\n", "a: ;", "b: ;"),
    "c: a case": ("c", "int f(int n) {\n  switch (n) {\n  case 1: ;\n  case ", ": ;\n  }\n}\n", "1", "2"),
    "java: a case": (
        "java",
        "class A {\n  void f(int n) {\n    switch (n) {\n      case 1: break;\n      case ",
        ": break;\n    }\n  }\n}\n",
        "1",
        "2",
    ),
    "go: a case": (
        "go",
        "package a\n\nfunc f(n int) {\n\tswitch n {\n\tcase 1:\n\tcase ",
        ":\n\t}\n}\n",
        "1",
        "2",
    ),
    "cpp: a reference": ("cpp", "void f(int &n) {\n  ", "\n}\n", "auto &n = m;", "auto &o = m;"),
    "cpp: what a loop declares": ("cpp", "void f() {\n  for (auto n : m) {\n    ", "\n  }\n}\n", "int n;", "g(n);"),
    "cpp: what a handler declares": (
        "cpp",
        "void f() {\n  try {} catch (E &e) {\n    ",
        "\n  }\n}\n",
        "E e;",
        "throw;",
    ),
    "cpp: a variable at the top": ("cpp", "int n;\n", "\n", "int n;", "extern int n;"),
    "cpp: a binding": ("cpp", "void f() {\n  int a;\n  auto [", ", b] = c;\n}\n", "a", "d"),
    "java: a variable": ("java", "class A {\n  void f() {\n    int n;\n    ", "\n  }\n}\n", "int n;", "n = 1;"),
    "java: one of a block around": (
        "java",
        "class A {\n  void f(int n) {\n    if (true) {\n      ",
        "\n    }\n  }\n}\n",
        "int n;",
        "new B() { void g() { int n; } };",
    ),
    "java: a parameter of a lambda": ("java", "class A {\n  void f(int n) {\n    g(", " -> 1);\n  }\n}\n", "n", "m"),
    "java: a field": ("java", "class A {\n  int n;\n  ", "\n}\n", "String n;", "void f() { int n; }"),
    "java: a method": ("java", "class A {\n  void f(int a) {}\n  ", "\n}\n", "void f(int b) {}", "void f(long a) {}"),
    "java: in two cases": (
        "java",
        "class A {\n  void f(int a) {\n    switch (a) {\n      case 1:\n        int n;\n      case 2:\n        ",
        "\n    }\n  }\n}\n",
        "int n;",
        "{ }",
    ),
    "csharp: a block around": (
        "csharp",
        "class A {\n  void F(int n) {\n    if (n > 1) {\n      ",
        "\n    }\n  }\n}\n",
        "int n;",
        "var m = n;",
    ),
    "csharp: a block above": (
        "csharp",
        "class A {\n  void F() {\n    { int n; }\n    ",
        "\n  }\n}\n",
        "int n;",
        "int m;",
    ),
    "csharp: a property": ("csharp", "class A {\n  int N;\n  ", "\n}\n", "int N { get; }", "void F() { int N; }"),
    "csharp: a class": ("csharp", "class A {}\n", "\n", "class A {}", "class A<T> {}"),
    "javascript: a constant": ("javascript", "let a = 1;\n", "\n", "const a = 2;", "{ const a = 2; }"),
    "javascript: a variable": ("javascript", "let a = 1;\n", "\n", "var a;", "a = 2;"),
    "javascript: a class": ("javascript", "var a = 1;\n", "\n", "class a {}", "var a;"),
    "javascript: a parameter": ("javascript", "function f(a) {\n", "\n}\n", "let a;", "var a;"),
    "javascript: a part of an object": ("javascript", "const {a, ", "} = b;\n", "c: a", "a: c"),
    "javascript: an import": ("javascript", "import {a} from 'b';\n", "\n", "const a = 1;", "const b = a;"),
    "javascript: an error": ("javascript", "try {} catch (e) {\n", "\n}\n", "let e;", "let f;"),
    "javascript: a constructor": (
        "javascript",
        "class A {\nconstructor() {}\n",
        "\n}\n",
        "constructor(a) {}",
        "a() {}",
    ),
    "typescript: a parameter": ("typescript", "function f(a: string, ", ": number) {}\n", "a", "b"),
    "typescript: a class": ("typescript", "class A {}\n", "\n", "class A {}", "interface A {}"),
    "tsx: an attribute": ("tsx", "const a = <b c='1' ", "='2'/>;\n", "c", "d"),
    "go: a variable": ("go", "package a\n\nfunc f() {\n\ta := 1\n\t", "\n}\n", "a := 2", "a, b := 2, 3"),
    "go: a parameter": ("go", "package a\n\nfunc f(a int) {\n\t", "\n}\n", "a := 2", "if a := 2; a > 1 {\n\t}"),
    "go: nothing new": ("go", "package a\n\nfunc f() {\n\ta, b := 1, 2\n\t", "\n}\n", "a, b := 3, 4", "a, b = 3, 4"),
    "go: a function": ("go", "package a\n\nfunc f() {}\n\n", "\n", "func f() {}", "func (t T) f() {}"),
    "go: a field": ("go", "package a\n\ntype T struct {\n\ta int\n\t", "\n}\n", "a string", "b string"),
    "go: a key": ("go", "package a\n\nvar t = T{a: 1, ", ": 2}\n", "a", "b"),
    "rust: a function": ("rust", "fn f() {}\n", "\n", "fn f() {}", "#[cfg(test)]\nfn f() {}"),
    "rust: a parameter": ("rust", "fn f(a: u8, ", ": u8) {}\n", "a", "b"),
    "rust: a field": ("rust", "struct S {\n    a: u8,\n    ", "\n}\n", "a: u16,", "b: u16,"),
    "rust: a field of a value": ("rust", "fn f() {\n    S { a: 1, ", " };\n}\n", "a: 2", "b: 2"),
    "php: a parameter": ("php", "<?php\nfunction f($a, ", ") {}\n", "$a", "$b"),
    "php: a method": (
        "php",
        "<?php\nclass A {\n  function f() {}\n  ",
        "\n}\n",
        "function f($a) {}",
        "function g() {}",
    ),
    "ruby: a parameter": ("ruby", "def f(a, ", ")\nend\n", "a", "b"),
    "lua: a label": ("lua", "::a::\n", "\n", "::a::", "::b::"),
    "json: a key": ("json", '{"a": 1, ', ": 2}\n", '"a"', '"b"'),
    "json: a member": ("json", '{"a": {"b": 1}', "}\n", ', "a": 1', ', "b": 1'),
    "yaml: a key": ("yaml", "a: 1\n", ": 2\n", "a", "b"),
    "yaml: a key in braces": ("yaml", "c: {a: 1, ", ": 2}\n", "a", "b"),
    "toml: a key": ("toml", "[t]\na = 1\n", " = 2\n", "a", "b"),
    "toml: a table": ("toml", "[", "]\nx = 1\n\n[b]\ny = 2\n", "b", "a"),
    "toml: a key and a table": ("toml", "", " = 1\n[a]\n", "a", "b"),
    "html: an attribute": ("html", '<a b="1" ', '="2">c</a>\n', "b", "d"),
}
# What may be there more than once.
SHADOWED = {
    "c: a type named before": ("struct a;\n", "\n", "struct a { int b; };"),
    "cpp: a class named before": ("class A;\n", "\n", "class A {};"),
    "cpp: templates": ("template <int A> void f();\n", "\n", "template <int A> void g();"),
    "rust": ("fn f() {\n    let a = 1;\n    ", "\n}\n", "let a = a;"),
    "python": ("a = 1\n", "\n", "a = 2"),
    "lua": ("local a = 1\n", "\n", "local a = 2"),
    "c": ("#ifdef A\nint n = 1;\n#else\n", "\n#endif\n", "int n = 2;"),
    "cpp": ("void f(int) {}\n", "\n", "void f(long) {}"),
    "csharp": ("partial class A {}\n", "\n", "partial class A {}"),
    "typescript": ("function f(a: string): void;\n", "\nfunction f(a: any) {}\n", "function f(a: number): void;"),
    "go": ("package a\n\nfunc init() {}\n\n", "\n", "func init() { _, _ = a, b }"),
    "yaml": ("- a: 1\n", "\n", "- a: 2"),
    "toml": ("[[a]]\n[a.b]\n[[a]]\n", "\n", "[a.b]"),
    "json": ('[{"a": 1}, ', "]\n", '{"a": 1}'),
}


def document(name: str, before: str, after: str) -> Document:
    return Document((before + after).encode(), [(len(before), len(before))], require(name))


@pytest.mark.parametrize("case", REPEATED)
def test_a_name_is_not_declared_again(case: str) -> None:
    name, before, after, again, other = REPEATED[case]
    for text, valid in ((again, False), (other, True)):
        assert document(name, before, after).check([text.encode()], thorough=True).valid == valid
        assert document(name, before, after).check_fresh([text.encode()]).valid == valid


@pytest.mark.parametrize("case", REPEATED)
def test_nor_is_it_in_the_end(case: str) -> None:
    name, before, after, again, _ = REPEATED[case]
    own = document(name, before, after)
    own.displace()
    own.relax()
    assert not own.check([again.encode()]).valid
    assert not own.check_fresh([again.encode()]).valid


@pytest.mark.parametrize("case", SHADOWED)
def test_what_may_be_there_twice_is_taken(case: str) -> None:
    before, after, text = SHADOWED[case]
    name = case.partition(":")[0]
    assert document(name, before, after).check([text.encode()]).valid
    assert document(name, before, after).check_fresh([text.encode()]).valid


@pytest.mark.parametrize("case", REPEATED)
def test_what_was_there_twice_may_stay(case: str) -> None:
    name, before, after, again, _ = REPEATED[case]
    text = (before + again + after).encode()
    end = len(before + again)
    for place in (len(before), end, len(text)):
        own = Document(text, [(place, place)], require(name))
        assert own.check([b""]).valid
        assert own.check_fresh([b""]).valid
    whole = Document(text, [(len(before), end)], require(name))
    assert whole.check_fresh([again.encode()]).valid


@pytest.mark.parametrize("name", [language.name for language in LANGUAGES if language.declarations])
def test_samples_declare_nothing_twice(samples: dict[str, tuple[Language, bytes]], name: str) -> None:
    language, text = samples[name]
    tree = Parser(language.grammar()).parse(text)
    assert language.declarations is not None
    assert not Repeated(language.declarations, language.grammar()).repeated(tree, text, [(0, len(text))])


def test_what_stands_outside_of_a_window_is_known() -> None:
    far = "\n".join(f"function unrelated{number}() {{\n  return 1;\n}}" for number in range(200))
    own = document("javascript", f"const first = 1;\n{far}\n", f"\n{far}\n")
    assert not own.check([b"const first = 2;"]).valid
    assert own.check([b"const second = 2;"]).valid


def test_a_fault_lies_at_the_name() -> None:
    own = document("c", "int f(void) {\n  int n;\n  ", "\n}\n")
    assert own.check([b"int n;"]).faults == ((0, 4),)


@pytest.mark.parametrize("case", REPEATED)
def test_a_search_finds_another_name(case: str, tokens: TokenText) -> None:
    name, before, after, *_ = REPEATED[case]
    found = first_fill(before, after, require(name), tokens)
    assert found is not None
    assert document(name, before, after).check_fresh([found.encode()]).valid


@pytest.mark.parametrize(
    "case", ["c: a variable", "java: a variable", "cpp: a binding", "toml: a table", "json: a key"]
)
def test_a_model_that_wants_the_name_gets_another_one(case: str, tokens: TokenText) -> None:
    name, before, after, again, _ = REPEATED[case]
    text, place = (before + after).encode(), len(before)
    region = Region(place, place, max_tokens=16, single_line=True)
    wanted = list(tokens.encode(again))
    rng = np.random.default_rng(5)
    for model in (certain([wanted], tokens.eog_id), noisy([wanted], tokens, rng, 0.2)):
        constraint = SyntaxConstraint(text, [region], require(name), tokens)
        verdict = fill(constraint, model, [region.max_tokens], tokens.eog_id)
        assert verdict.status == "ok"
        assert verdict.fills is not None
        assert document(name, before, after).check_fresh([verdict.fills[0].encode()]).valid
