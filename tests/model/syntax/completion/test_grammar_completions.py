"""Completions by the grammar where no valid fill is known."""

from itertools import islice

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax import parses
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.completion import grammar_completions
from lacuna_model.syntax.completion.grammar_completions import GrammarCompletions

# The prefix and the suffix of a gap. In each case a guess from the brackets alone is not enough.
JOINED = {
    "go: an interface": (
        "go",
        'package a\n\nconst (\n\tB = "b"\n\n',
        "\n\tC(d []byte, e *F) ([]byte, error)\n\tG(h []byte) error\n}\n",
    ),
    "rust: a list of values": ("rust", "fn f() {\n    g();\n}\n\n", '\n    A {\n        b: "c",\n    },\n];\n'),
    "rust: a macro's own syntax": (
        "rust",
        "fn f() {\n    g();\n",
        "\nimpl (A) for\nstruct B where { C: D }\nitem: E,\n}\n",
    ),
    "rust: the end of a type": ("rust", "fn f() {}\n\n", "\n    A<B>,\n>;\n\nfn g() {}\n"),
    "typescript: one of two values": (
        "typescript",
        "function f(a) {\n  const b =\n    a\n",
        "\n          c: 1,\n          d: 2,\n        }\n      : null;\n}\n",
    ),
    "typescript: one type of three": (
        "typescript",
        "type A<B> =\n  | (B extends readonly string[]\n",
        "\n        : C<B>\n      : D)\n  | E;\n",
    ),
    "typescript: a method of a class": (
        "typescript",
        "/**\n * a\n",
        "\n\n    const b = 1;\n    return b;\n  }\n\n  constructor(e: F) {\n    this.g = e;\n  }\n}\n",
    ),
    "typescript: the end of a line ends a statement": (
        "typescript",
        "type A<B> = B extends string\n",
        "\n  ? 1\n  : 2\n  : 3\n\nfor (const c of d) {\n  if (!e(c)) continue\n  f = g(c) ?? (h ? 'i' : 'j')\n}\n",
    ),
    "javascript: a value of a call in a method of an object": (
        "javascript",
        "if (a) {\n  b();\n",
        "\n        c[d] = e[d];\n      }\n    });\n\n    return f;\n  },\n};\n\ng.h = i;\n",
    ),
    "python: a list of pairs": ("python", "a = 1\nb = 2\n", '\n    "c": "d",\n    "e": True,\n}\nf = 3\n'),
    "python: a list of pairs in a block": (
        "python",
        "if a:\n    b = 1\n",
        '\n        "c": "d",\n        "e": True,\n    }\n',
    ),
    "python: a list of pairs behind a block": ("python", "if a:\n    b = 1\n", '\n    "c": "d",\n    "e": True,\n}\n'),
    "python: a block behind a string": (
        "python",
        'if a:\n    b = 1\n"""\n    c\n\n',
        "\n\n        # d\n        self.e = f\n",
    ),
    "c: nothing": ("c", "int f() {\n  a();\n", "\n  b();\n}\n"),
    "c: the end of a loop in a function": ("c", "int f() {\n  for (;;) {\n    a();\n", ""),
    "cpp: arguments of a template": (
        "cpp",
        "struct A {\n  A(const B<W>& b,\n    typename std::c<std::d<W*, V*>::value,\n",
        "\n      : e(b.f), g(1) {}\n};\n",
    ),
    "c: the ends of a chain": ("c", "int f() {\n" + "  if (a) b(); else\n" * 6 + "  if (a)\n", ""),
    "rust: bounds of a structure": (
        "rust",
        "struct A<P>\nwhere\n    P: B,\n{\n    x: P,\n",
        "\nwhere\n    P: B,\n{\n    y: P,\n    z: u8,\n}\n",
    ),
    "rust: bounds of methods": (
        "rust",
        "impl<P> A<P> {\n",
        "\nwhere\n    P: B,\n{\n    fn f(&self) -> &P {\n        &self.x\n    }\n}\n",
    ),
    "c: block that a clause follows": (
        "c",
        "void f(int x) {\n  if (x) {\n    x++;\n    if (x > 1)\n",
        "\n  {\n    x--;\n    return;\n  }\n  else if (x)\n  {\n    x++;\n  }\n}\n",
    ),
    "typescript: union": (
        "typescript",
        'import { A } from "a"\n\n',
        '\n    | { b: "c"; d: string }\n    | A<unknown>\n\n',
    ),
    "java: end of a loop": ("java", "class A {\n  void f() {\n", "\n      break;\n    }\n  }\n}\n"),
    "rust: arms of a match in an arm": (
        "rust",
        "fn f(a: A) {\n    for b in c {\n",
        "\n                Some(d) => e.push(d),\n                None => {\n                    g = 1;\n"
        "                }\n            },\n            H => break,\n        }\n    }\n}\n",
    ),
    "rust: block of an arm": (
        "rust",
        "fn f(a: A) {\n",
        "\n            let b = 1;\n            g(b);\n        }\n        B(c) => h(c),\n    }\n}\n",
    ),
    "rust: bounds with a path": (
        "rust",
        "impl A for B {\n    fn f() {\n        g()\n",
        "\n    G: A + B,\n    H: a::B,\n{\n    fn g(&self) {\n        h()\n    }\n}\n",
    ),
    "java: a string that is open": ("java", 'class A {\n  String a = "b', "\n  int c;\n}\n"),
}


def junction(name: str, before: str, after: str) -> tuple[Document, GrammarCompletions]:
    text, place = (before + after).encode(), len(before.encode())
    document = Document(text, [(place, place)], require(name))
    found = document.junction()
    assert found is not None
    return document, found


@pytest.mark.parametrize("case", JOINED)
def test_a_prefix_and_a_suffix_are_joined(case: str) -> None:
    document, own = junction(*JOINED[case])
    assert any(document.check_fresh([text]).valid for text in own.completions(b""))


def test_a_completion_continues_the_text_already_written() -> None:
    document, own = junction("javascript", "f(1);\n", "\n  g(2);\n}\n")
    found = [b"if (" + text for text in own.completions(b"if (")]
    assert any(document.check_fresh([text]).valid for text in found)


def test_a_name_with_parameters_before_a_block_is_read_as_a_method() -> None:
    after = "\n    b();\n  }\n\n  c(d) {\n    e();\n  }\n\n  f(g) {\n    h();\n  }\n}\n"
    _, own = junction("javascript", "a();\n", after)
    assert b"class" in next(own.completions(b""))


def test_a_prefix_that_the_grammar_cannot_read_has_no_completion() -> None:
    _, own = junction("c", "int f() {\n  a(;\n", "\n}\n")
    assert not list(own.completions(b""))


def test_the_text_before_another_gap_may_leave_brackets_open() -> None:
    parts = (b"fn f() {\n    g();\n}\n\n", b"\n    A { b: 1 },\n    A { b: 2 },\n", b"\n    A { b: 3 },\n];\n")
    places = [len(parts[0]), len(parts[0] + parts[1])]
    document = Document(b"".join(parts), [(place, place) for place in places], require("rust"))
    own = document.junction()
    assert own is not None
    assert any(document.check_fresh([text, b""]).valid for text in own.completions(b""))


def test_a_python_string_in_the_prefix_is_read() -> None:
    document, own = junction("python", 'a = f("b", c=[\n', "\n)\n")
    assert any(document.check_fresh([text]).valid for text in own.completions(b""))


def test_open_constructs_are_ended_and_a_directive_on_a_line_of_its_own() -> None:
    before = "#ifndef A\n#define A\n\nnamespace a {\n\nclass B {\n public:\n  void f() {\n    g();\n"
    document, own = junction("cpp", before, "")
    assert next(own.completions(b"")) == b"}};}\n#endif"
    assert document.check_fresh([b"}};}\n#endif"]).valid


def test_a_comment_that_contains_the_next_gap_is_not_read_as_code() -> None:
    front, between, end = b"type A = {\n", b"\n  b: C;\n};\n\n/**\n * d\n", b" */\nconst e = 1;\n"
    second = len(front + between)
    document = Document(front + between + end, [(len(front), len(front)), (second, second)], require("typescript"))
    own = document.junction()
    assert own is not None
    assert b"" in own.completions(b"")


STOPS = {
    "rust: a loop over a list, whose block is not begun": (
        "rust",
        "fn f() {\n    for (a, b) in &[\n        (6, 0),\n",
    ),
    "go: constants": ("go", "package a\n\nconst (\n\tb = 1\n"),
    "typescript: one of two types": ("typescript", "type A<B> = B extends string\n  ? { c: B\n"),
    "javascript: arguments": ("javascript", "a.b((c) => {\n  d({ e: [1,\n"),
    "java: a comment in a class": ("java", "class A {\n  int f() {\n    return 1;\n  }\n\n  /**\n   * Says more.\n"),
    "c: an else without a statement": ("c", "int f() {\n  if (a)\n    b();\n  else\n"),
    "cpp: a template": ("cpp", "template <typename A,\n"),
    "nothing is open": ("javascript", "a();\n"),
}


def endings(name: str, text: str, most: int = 8) -> list[bytes]:
    document = Document(text.encode(), [(len(text), len(text))], require(name))
    own = document.junction()
    assert own is not None
    return list(islice(own.endings(), most))


@pytest.mark.parametrize("case", STOPS)
def test_a_text_that_stops_in_the_middle_is_ended(case: str) -> None:
    name, text = STOPS[case]
    found = endings(name, text)
    assert any(parses(text.encode() + ending, require(name)) for ending in found)
    assert len(set(found)) == len(found)


def test_a_complete_text_needs_no_ending() -> None:
    assert endings("c", "int f() {\n  return 1;\n}\n")[0] == b""


def test_a_search_for_an_ending_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_completions, "MAX_ENDINGS", 1)
    assert endings("javascript", "a(b(c(\n") == []


def test_a_suffix_that_closes_many_brackets_is_joined() -> None:
    _, own = junction("lua", "local a = f(\n", "{" * 200 + "}" * 199 + "b\n")
    assert any(own.completions(b""))


def test_a_tree_may_be_deeper_than_the_recursion_limit_of_python() -> None:
    _, own = junction("python", "a = 1\n", "[" * 1500 + "1 +" + "]" * 1500 + "\n")
    assert any(own.completions(b""))
