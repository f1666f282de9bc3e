import pytest
from tests.server.refactor.bench import Bench

from lacuna_server.refactor.rewriting.refactoring import by_structure, by_syntax

SWAPPED = "fresh($B, $A)"
SAME = "fresh($A, $B)"


@pytest.mark.parametrize(
    ("name", "template", "before", "after"),
    [
        ("a.js", SWAPPED, "old(1, /* p */ 2);\n", "fresh(/* p */ 2, 1);\n"),
        ("a.js", SWAPPED, "old(1 /* p */, 2 /* q */);\n", "fresh(2 /* q */, 1 /* p */);\n"),
        ("a.js", SAME, "old(1, // p\n  2);\n", "fresh(1, // p\n  2);\n"),
        ("a.js", SWAPPED, "old(old(1, /* p */ 2), /* q */ 3);\n", "fresh(/* q */ 3, fresh(/* p */ 2, 1));\n"),
        ("a.py", SWAPPED, "old(1,  # p\r\n    2)\r\n", "fresh(2, 1)  # p\r\n"),
        ("a.py", SAME, "if x: old(1,  # p\n  2  # q\n    )\n", "if x: fresh(1,  # p\n  2  # q\n    )\n"),
    ],
)
def test_a_comment_moves_with_the_piece_next_to_it(
    bench: Bench, name: str, template: str, before: str, after: str
) -> None:
    assert bench.apply(by_structure("old($A, $B)", template), before, name) == after


def test_a_comment_after_a_header_moves_into_the_block(bench: Bench) -> None:
    refactoring = by_structure("if $C:\n    $$$B", "with t():\n    if $C:\n        $$$B")
    assert bench.apply(refactoring, "if a:  # p\n    # q\n    b()\n    # r\n") == (
        "with t():\n    if a:\n        # p\n        # q\n        b()\n    # r\n"
    )


@pytest.mark.parametrize(
    ("name", "pattern", "template", "text", "reason"),
    [
        ("a.js", "old($A, $B)", "fresh($B)", "old(1 /* p */, 2);\n", "no place for its comment '/* p */'"),
        ("a.js", "old($A, $B)", "fresh($A)", "old(1, f(/* p */ 2));\n", "no place for its comment '/* p */'"),
        ("a.js", "old()", "fresh", "old(/* p */);\n", "no place for its comment '/* p */'"),
        ("a.js", "old($A, $B)", SWAPPED, "old(1, // p\n  2);\n", "no place for its comment '// p'"),
        ("a.js", "old($A)", "return $A", "x = old(\n  // p\n  1);\n", "no place for its comment '// p'"),
        ("a.js", "function $F() { $$$B }", "$F = () => { $$$B }", "async function f() {}\n", "not name its 'async'"),
        ("a.py", "raise $E", "fail($E)", "raise a from b\n", "does not name its 'from'"),
        ("a.py", "assert $A", "check($A)", "assert a, b\n", "does not name its 'b'"),
        ("a.js", "if ($A) { $$$B }", "ok($A, () => { $$$B })", "if (a) {} else {}\n", "does not name its 'else'"),
        ("a.rb", "$A.new", "kept($A.new)", "Stack.new { |stack| stack }\n", "does not name its '{', "),
        ("a.js", "for (const $A of $B) $C", "each($B, $C)", "for await (const a of b) c();\n", "not name its 'await'"),
        ("a.c", "old($A, $B);", "fresh($B, $A);", "void f() {\n    old(1, CAST b);\n}\n", "does not parse"),
    ],
)
def test_a_place_that_would_lose_something_is_reported_and_not_changed(
    bench: Bench, name: str, pattern: str, template: str, text: str, reason: str
) -> None:
    files, left_out = bench.edits(by_structure(pattern, template), [bench.source(text, name)])
    assert not files
    assert len(left_out) == 1
    assert reason in left_out[0]


def test_other_places_are_rewritten_around_one_that_is_not_changed(bench: Bench) -> None:
    source = bench.source("old(old(/* p */), 1);\nold(2, 3);\n", "a.js")
    (file,), left_out = bench.edits(by_structure("old($A, $B)", SWAPPED), [source])
    assert file.rewritten(source.data) == b"fresh(1, old(/* p */));\nfresh(3, 2);\n"
    assert left_out == []
    (file,), left_out = bench.edits(by_structure("old($$$A)", "fresh($$$A)"), [source])
    assert file.rewritten(source.data) == b"fresh(fresh(/* p */), 1);\nfresh(2, 3);\n"


def test_lines_inserted_after_a_node_follow_its_comment(bench: Bench) -> None:
    refactoring = by_syntax("(import_statement) @after", "\nimport b", "python")
    assert bench.apply(refactoring, "import a  # p\nc = 1\n") == "import a  # p\nimport b\nc = 1\n"
