"""The parts of the witness search on their own."""

import re

import numpy as np
import pytest
from tree_sitter import Parser

from lacuna_model.core.constraint import Commit, GapView
from lacuna_model.core.params import Region
from lacuna_model.syntax import LANGUAGES, Language, SyntaxConstraint, language_for
from lacuna_model.syntax.broken.unfinished import count_open
from lacuna_model.syntax.check.compilers import python_program, python_syntax
from lacuna_model.syntax.check.document import Check, Document
from lacuna_model.syntax.check.error_set import tree_faults
from lacuna_model.syntax.check.extent import find_extents
from lacuna_model.syntax.text.balance import Balance
from lacuna_model.syntax.text.columns import Line, Needs, lay_lines, open_lines, render
from lacuna_model.syntax.text.literals import carried_quote
from lacuna_model.syntax.text.scan import scan
from lacuna_model.syntax.text.vocabulary import Vocabulary, vocabulary_of

from .conftest import SmallTokens
from .drive import between, first_fill, require

Samples = dict[str, tuple[Language, bytes]]


def python() -> Language:
    return require("python")


@pytest.mark.parametrize(
    ("before", "fill", "after"),
    [
        ("x = foo(a, ", "b", "\ny = 1\n"),
        ("x = [1, {2: ", "", "\ny = 1\n"),
        ("if a", "", "\ny = 1\n"),
        ("def f(self, a", "", "\n    return a\n"),
        ('x = "abc', " d", "\n"),
        ("class A:\n    def f(self):\n        if x:\n", "", "        return 1\n"),
        ("try:\n    x = 1\n", "", "y = 2\n"),
        ("try:\n    ", "x()", "\nexcept E:\n    pass\n"),
        ("for x in y:\n    ", "a = 1\n", "print(a)\n"),
        ("x = (", "", ", 3)\n"),
        ("def f():\n    a = 1\n    ", "", " in x:\n        print(1)\n"),
    ],
)
def test_a_valid_completion_is_found(before: str, fill: str, after: str) -> None:
    document, closer = between(before, after, python())
    texts = [fill.encode() + closing for closing in closer.completions(fill.encode())]
    assert any(document.check([text]).valid for text in texts)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("before", "fill", "after", "completion"),
    [
        ("for a in b:", "\n    if a:", "\n        print(a)\n", ""),
        ("for a in b:", "\n    if a:", "\n    print(a)\n", "x"),
    ],
    ids=["block-follows", "no-block-follows"],
)
def test_the_first_valid_completion_adds_only_what_is_missing(
    before: str, fill: str, after: str, completion: str
) -> None:
    document, closer = between(before, after, python())
    found = next(text for text in closer.completions(fill.encode()) if document.check([fill.encode() + text]).valid)
    assert found.strip() == completion.encode()


@pytest.mark.parametrize("word", ["defer", "go"])
def test_a_function_after_defer_or_go_is_called(word: str) -> None:
    _, closer = between(f"package a\n\nfunc f() {{\n\t{word} func() {{\n\t\tg()\n", "\n}\n", require("go"))
    assert next(closer.completions(b"")) == b"}()"


@pytest.mark.parametrize(
    ("name", "before", "after", "completion"),
    [
        pytest.param("go", "type a struct {\n\tb int\n", "\n\tc()\n}\n", b"}\nfunc x() {", id="behind a block"),
        pytest.param("php", "<?php\nif (a()) {\n    b(1", "\n", b");}", id="in a block"),
    ],
)
def test_a_completion_ends_an_open_statement(name: str, before: str, after: str, completion: bytes) -> None:
    document, closer = between(before, after, require(name))
    assert next(text for text in closer.completions(b"") if document.check([text]).valid) == completion


def test_an_element_ends_before_a_comment() -> None:
    before, after = "a = {\n  get b () {\n", "\n   */\n\n  get c () {}\n}\n"
    document, closer = between(before, after, require("javascript"))
    assert any(document.check([text]).valid for text in closer.completions(b""))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param(
            "python", "def f():\n    @g(1)\n", "\n        return 1\n    x = 2\n", id="body of what is decorated"
        ),
        pytest.param("python", "def f():\n    @g(1)\n", "\n    x = 2\n", id="decorator without a body"),
        pytest.param(
            "python",
            "class A:\n    x = 1\n\n",
            "\n        *args: t.Any,\n        y: int,\n    ) -> int:\n        return 1\n",
            id="parameters",
        ),
        pytest.param(
            "python", "def f():\n    if x:\n", "\n            a=e,\n        ) from e\n    return 1\n", id="raise from"
        ),
        pytest.param(
            "rust",
            "fn f(x: A) -> u8 {\n    match x {\n        A::B => {\n            1\n        }\n",
            "\n            2\n        }\n        A::D => {\n            3\n        }\n    }\n}\n",
            id="arm of a match",
        ),
        pytest.param(
            "rust",
            "fn f() {\n    g(A {\n        x: 1,\n",
            "\n            .map(|y| y),\n        z: 2,\n    });\n}\n",
            id="field",
        ),
        pytest.param(
            "rust",
            "fn f() {\n    assert!(\n        a,\n",
            "\n        x: f.x(),\n    });\n}\n",
            id="value with fields",
        ),
        pytest.param(
            "javascript",
            "switch (x) {\n",
            "\n    break;\n  }\n  case 2: {\n    break;\n  }\n}\n",
            id="first case",
        ),
        pytest.param("rust", "fn f(x: u8) {\n    match x {\n", "\n    }\n}\n", id="first arm"),
        pytest.param("typescript", "export type A = Required<\n", "\n  x: 5,\n};\n\nlet y = 1;\n", id="type left open"),
        pytest.param("rust", "fn f() {\n    g(", '\n"quoted" {{x}}\n"#);\n}\n', id="raw string"),
        pytest.param("c", "#ifdef A\nint x;\n", "\nint y;\n", id="condition left open"),
        pytest.param("c", "int x;\n", "\nint y;\n#endif\n", id="end of a condition"),
        pytest.param("c", "#if A\n#if B\nint x;\n", "\n  return 1;\n}\n#endif\n", id="condition and function"),
        pytest.param(
            "c",
            "void f(int x) {\n  if (x) {\n    if (x > 1)\n",
            "\n\n  x = 1;\n}\n\nint y;\n",
            id="header without braces",
        ),
        pytest.param(
            "c",
            "void f(int x) {\n  if (x) {\n",
            "\n      x = 1;\n    } else if (x) {\n      x = 2;\n    }\n  } else {\n    x = 3;\n  }\n}\n",
            id="two choices opened",
        ),
        pytest.param(
            "c",
            "void f(int x)\n{\n  while (x)\n  {\n    x =\n",
            "\n  y = 1;\n}\n",
            id="value on a line of its own",
        ),
        pytest.param(
            "c",
            "void f(int x) {\n  if (x) {\n    if (y) {\n      g(x,\n",
            "\n  } else {\n    y = 1;\n  }\n}\n",
            id="statement in a block that ends",
        ),
        pytest.param(
            "cpp",
            "class A : B {\n  A(int x) :\n",
            "\n  void g() { h(); }\n};\n",
            id="what a constructor sets up",
        ),
        pytest.param(
            "rust",
            "fn f() {\n    g(\n        |a: &A,\n         b: &B,\n",
            "\n            h()?;\n            Ok(())\n        },\n    );\n}\n",
            id="parameters of a closure",
        ),
        pytest.param(
            "javascript",
            "function f(x) {\n",
            "\n      x.g()) return h(x)\n  else if (x.i()) return j(x)\n}\n",
            id="rest of a condition",
        ),
        pytest.param(
            "python",
            "x = f(\n    1,\n",
            '\n    Some words here. More words.\n    """\n    import b\n\n    return 1\n',
            id="docstring of a function",
        ),
        pytest.param(
            "go",
            "package a\n\nfunc f() {\n",
            "\n\t\ta: 1,\n\t}, {\n\t\ta: 2,\n\t}}\n}\n",
            id="list of values",
        ),
        pytest.param(
            "go",
            "package a\n\nfunc f() {\n\tt := []struct {\n\t\ta int\n",
            "\n\t\ta: 1,\n\t}, {\n\t\ta: 2,\n\t}}\n}\n",
            id="list of values of a type left open",
        ),
    ],
)
def test_a_fill_is_found_before_anything_is_proposed(tokens: SmallTokens, name: str, before: str, after: str) -> None:
    assert first_fill(before, after, require(name), tokens) is not None


@pytest.mark.parametrize(
    ("before", "after"), [("@b(\n    c,\n", "\n    d = 1\n"), ("class A:\n    @b(c=\n", "\n        d = 1\n")]
)
def test_a_function_is_written_after_a_decorator(before: str, after: str) -> None:
    document, closer = between(before, after, python())
    valid = next(text for text in closer.completions(b"") if document.check_fresh([text]).valid)
    assert b"def x():" in valid


@pytest.mark.parametrize(
    ("text", "counts"),
    [("#if A\n#if B\n#endif\n", (1, 0)), ("x\n#endif\n", (0, 1)), ("#ifdef A\n# endif\n#endif\n", (0, 1))],
)
def test_conditional_lines_are_counted(text: str, counts: tuple[int, int]) -> None:
    assert count_open(text.encode()) == counts


def test_a_bracket_ends_before_the_next_statement() -> None:
    first, second = b"def f():\n    x = [\n        1,\n", b"\n            y = x\n            assert y\n"
    text = first + second + b"\n"
    gaps = [(len(first), len(first)), (len(text) - 1, len(text) - 1)]
    assert Balance(text, gaps, python().lexicon).sides(0).target.stack == ()


def test_a_header_must_suit_the_block_after_it() -> None:
    document = Document(b"class A:\n\n        return 1\n", [(9, 9)], python())
    assert document.check([b"    def f(self):"]).valid
    assert not document.check([b"    class B:"]).valid


def test_a_keyword_must_suit_the_function_around_it() -> None:
    document = Document(b"def f(x):\n    \n", [(14, 14)], python())
    assert document.check([b"return x"]).valid
    assert not document.check([b"y = await x"]).valid


def test_a_fill_must_open_a_function_whose_body_the_suffix_continues() -> None:
    filler = "".join(f"def f{i}():\n    return {i}\n\n\n" for i in range(40))
    before = filler + "class A:\n"
    text = before + "\n        else:\n            return 1\n\n\n" + filler
    document = Document(text.encode(), [(len(before), len(before))], python())
    assert document.check([b"    def f(x):\n        if x:\n            pass"]).valid
    assert not document.check([b"    if x:\n        if x:\n            pass"]).valid


def test_the_gap_before_a_compiler_error_is_blamed() -> None:
    text = b"def f():\n    \n\n\nclass A:\n    \n    if x:\n        y()\n        return 1\n"
    document = Document(text, [(13, 13), (29, 29)], python())
    assert [gap for gap, _ in document.check_fresh([b"pass", b"pass"]).faults] == [1]


@pytest.mark.parametrize(
    ("piece", "before", "inside"),
    [
        ('\n    x = 1\n    return x\n\n\ndef g():\n    """Adds the two of them\n\n    and says so.\n', '"""', ""),
        ('\n    and says what came of it.\n\n    Nothing else.\n    """\n    x = 1\n    return x\n', "", '"""'),
        ("\n    Adds the two of them\n    and says so,\n    to whoever asks.\n", "", '"""'),
        ("\n    x = 1\n    return f(x)\n", '"""', ""),
        ("\n    Adds.\n", '"""', '"""'),
    ],
)
def test_code_and_prose_tell_where_a_docstring_is(piece: str, before: str, inside: str) -> None:
    assert carried_quote(piece.encode(), before.encode(), python().lexicon) == inside.encode()


@pytest.mark.parametrize(("name", "sound"), [("größe", True), ("a\u2212b", False), ("a•b", False)])
def test_a_name_with_a_symbol_is_invalid(name: str, sound: bool) -> None:
    text = b"let x = ;\nlet y = '\xe2\x88\x92';\n"
    assert Document(text, [(8, 8)], require("javascript")).check([name.encode()]).valid == sound
    quoted = f"'{name}'".encode()
    assert Document(text, [(8, 8)], require("javascript")).check([quoted]).valid


def test_a_scan_finds_open_brackets_strings_and_headers() -> None:
    lexicon = python().lexicon
    state = scan(b'if f(a, [b, "c', lexicon)
    assert state.closers == (b")", b"]")
    assert state.inside == b'"'
    assert state.header_open
    assert scan(b'd"]):\n', lexicon, state).body_due == b""
    assert [bracket.closer for bracket in scan(b"x) + y]\n", lexicon).unmatched] == [b")", b"]"]


def test_a_layout_opens_the_blocks_of_the_lines_to_come() -> None:
    opened = [Line(0, b"def"), Line(4, b"x")]
    layout = lay_lines(opened, [Line(8, b"y"), Line(4, b"except")], header=False, unit=4)
    assert render(layout, b"\n", b" ") == b"\n    try:\n        "
    assert open_lines(b"class A:\n    def f():\n        x", 4) == [
        Line(0, b"class"),
        Line(4, b"def"),
        Line(8, b"x"),
    ]


def test_a_block_that_returns_is_put_into_a_function_of_the_class() -> None:
    opened = [Line(0, b"class"), Line(4, b"x")]
    layout = lay_lines(opened, [Line(8, b"y")], header=False, unit=4, needs=Needs(b"if x:", b"def x():"))
    assert render(layout, b"\n", b" ") == b"\n    def x():\n        "


def test_an_extent_ends_after_a_raw_string_that_a_gap_opens() -> None:
    before, after = 'fn f() {\n    g(r"a");\n', '\nName\n  b\n"#);\n}\n\n' + "fn h() {}\n\n" * 400
    extents, _ = find_extents((before + after).encode(), [(len(before), len(before))], require("rust"))
    assert '"#);\n}' in (before + after)[extents[0].begin : extents[0].stop]


@pytest.mark.parametrize("last", ["int g(void)\n{\n  b();\n}\n", "int g(void) {\n  b();\nend:\n  c();\n}\n"])
def test_an_extent_ends_after_a_function_whose_brace_or_label_begins_a_line(last: str) -> None:
    before, after = "int x;\n\nint f(void)\n{\n  a();\n", "}\n\n" + last
    text = before + after + "\nint y;\n" * 400
    extents, _ = find_extents(text.encode(), [(len(before), len(before))], require("c"))
    assert text[extents[0].begin : extents[0].stop].strip() == (before + after).strip()


def test_extents_are_small_and_grow_out_of_literals() -> None:
    body = "".join(f"def f{i}(x):\n    return x + {i}\n\n\n" for i in range(200))
    place = body.index("return x + 100")
    extents, rest = find_extents(body.encode(), [(place, place)], python())
    assert rest is not None
    assert not rest.root_node.has_error
    assert extents[0].stop - extents[0].begin < 200
    listing = "data = {\n" + "".join(f"'{i}': [\n{i}],\n" for i in range(300)) + "}\n"
    text = ("a = 1\n" * 50 + listing + "b = 2\n" * 50).encode()
    place = text.index(b"'150'")
    extents, _ = find_extents(text, [(place, place)], python())
    assert (
        text[extents[0].begin : extents[0].stop].startswith(b"a = 1\ndata")
        or b"data = {" in text[extents[0].begin : extents[0].stop]
    )


def test_a_vocabulary_encodes_any_bytes(tokens: SmallTokens) -> None:
    vocabulary = Vocabulary(tokens)
    for data in (b"return x", "größe → 数".encode(), b"\xff\xfe\x00", b"\n\t"):
        assert vocabulary.text(vocabulary.encode(data)) == data
    assert vocabulary_of(tokens) is vocabulary_of(tokens)


def test_the_compiler_is_asked_about_errors_of_the_fill_only() -> None:
    text = b"print 1\nx = (2\ny = 3\n"
    assert python_syntax(text, [(17, 18)]) is None
    assert python_syntax(b"x = 1\ny = (2]\n", [(6, 13)]) is not None
    assert python_syntax(b"def f():\n    return 1\n", [(9, 21)]) is None
    assert python_program(b"return 1\n", [(0, 8)]) is not None
    assert python_syntax(b"x = '\0'\n", [(0, 7)]) is not None


def test_a_try_without_clauses_is_an_error_of_its_own_fill() -> None:
    text = b"try:\n    try:\n        a()\n    finally:\n        b()\n    c()\nd()\n"
    assert python_syntax(text, [(0, 4)]) is not None
    assert python_syntax(text, [(9, 13)]) is not None  # a fill after it may have to write the clauses
    behind = b"try:\n    a()\nb()\nc()\n"
    assert python_syntax(behind, [(len(behind) - 4, len(behind) - 1)]) is None


def test_completions_can_be_listed_again() -> None:
    _, closer = between("def f(", "):\n    pass\n", python())
    first = list(closer.completions(b"x"))
    assert first
    assert list(closer.completions(b"x")) == first


def test_languages_have_distinct_names_and_extensions() -> None:
    names = [language.name for language in LANGUAGES]
    assert len(names) == len(set(names)) == 20
    extensions = [extension for language in LANGUAGES for extension in language.extensions]
    assert len(extensions) == len(set(extensions))
    assert language_for("x/A.TSX") is not None
    assert language_for("x.py", name="nothing") is None
    for language in LANGUAGES:
        tree = Parser(language.grammar()).parse(b"")
        assert re.fullmatch(r"[a-z]+", language.name)
        assert isinstance(tree_faults(tree), frozenset)


def test_strict_constraint_leaves_no_error(tokens: SmallTokens) -> None:
    text = b"def f():\n    a = = 1\n    b = \n    return b\n"
    place = text.index(b"b = ") + 4
    constraint = SyntaxConstraint(text, [Region(place, place, max_tokens=8)], python(), tokens, strict=True)
    assert constraint.finish([_closed(tokens, "1")], truncate=False).status == "no_valid_fill"
    constraint = SyntaxConstraint(text, [Region(place, place, max_tokens=8)], python(), tokens)
    assert constraint.finish([_closed(tokens, "1")], truncate=False).fills == ("1",)


def test_no_witness_is_kept_that_the_check_of_the_document_refuses(
    tokens: SmallTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Check(((0, 0),))
    monkeypatch.setattr(Document, "check_soon", lambda self, fills: refused if b"1" in fills[0] else Check(()))
    constraint = SyntaxConstraint(b"a = \nb = 2\n", [Region(4, 4, max_tokens=1)], python(), tokens)
    ids = np.array([[tokens.encode("1")[0], tokens.encode("2")[0]]])
    view = GapView((), (None,), ids, np.log(np.array([[0.9, 0.1]], dtype=np.float32)))
    constraint.admit([view], [Commit(0, 0, int(ids[0, 0]))])
    assert constraint.witness not in (None, ("1",))


def _closed(tokens: SmallTokens, text: str) -> GapView:
    return GapView(tuple(tokens.encode(text)), (), closed=True)
