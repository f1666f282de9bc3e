import pytest
from tests.server.refactor.bench import Bench, Scripted, marked

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.recipes import by_recipe

X = Scripted(lambda region: "X")


@pytest.mark.parametrize(
    ("recipe", "name", "text"),
    [
        ("docstrings", "a.py", 'def f():\n«    """X"""\n»    return 1\n\n\nclass A:\n    """Known."""\n'),
        (
            "docstrings",
            "a.py",
            'class A:\n    """K."""\n\n    def g(self):\n        # why\n«        """X"""\n»        pass\n',
        ),
        ("docstrings", "a.py", "def h(): pass\n"),
        ("docstrings", "a.ts", "// Known.\nfunction f() {}\n\n«/** X */\n»export function g() {}\n"),
        ("docstrings", "a.ts", "/** Known. */\nclass A {\n«  /** X */\n»  h() {}\n}\n"),
        ("docstrings", "a.js", "«/** X */\n»function f() {}\n"),
        ("docstrings", "a.rs", "/// Known.\nfn f() {}\n\nmod m {\n«    /// X\n»    struct S;\n}\n"),
        ("docstrings", "a.go", "package a\n\n// F is known.\nfunc F() {}\n\n«// G X\n»func G() {}\n"),
        ("test-bodies", "a.py", "def test_a():\n    «pass→assert X»\n\n\ndef g():\n    pass\n"),
        ("test-bodies", "a.py", 'def test_b():\n    """K."""\n    «...→assert X»\n\n\ndef test_c():\n    assert f()\n'),
        ("test-bodies", "a.js", 'it("b", () => {«\n    expect(X).toBe(X);\n»});\nit("d", () => { e(); });\n'),
        ("test-bodies", "a.js", 'test("c", function () {«\n    expect(X).toBe(X);\n»});\n'),
        (
            "test-bodies",
            "a.go",
            'package a\n\nfunc TestA(t *testing.T) {«\n    if X {\n        t.Error("X")\n    }\n»}\n',
        ),
        ("test-bodies", "a.rs", "#[test]\nfn f() {«\n    assert!(X);\n»}\n\nfn g() {}\n"),
    ],
)
def test_what_is_missing_is_added(bench: Bench, recipe: str, name: str, text: str) -> None:
    before, after = marked(text)
    assert bench.apply(by_recipe(recipe, {}), before, name, X) == after


@pytest.mark.parametrize("name", ["a.js", "a.ts", "a.tsx"])
def test_a_doc_comment_stands_above_decorators(bench: Bench, name: str) -> None:
    known = "class A {\n  /** Known. */\n  @B('c')\n  @D() f() {}\n\n"
    before = "  @B({ c: [d()] })\n  @D\n  g() {}\n\n  h() {}\n}\n"
    after = before.replace("  @B", "  /** X */\n  @B").replace("  h", "  /** X */\n  h")
    assert bench.apply(by_recipe("docstrings", {}), known + before, name, X) == known + after


def test_unknown_recipes_and_settings_are_named() -> None:
    with pytest.raises(RequestError, match="unknown recipe 'magic'; known: annotations, arms, docstrings"):
        by_recipe("magic", {})
    with pytest.raises(RequestError, match="the recipe logging has no setting 'level'; known: none"):
        by_recipe("logging", {"level": "info"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.js", "it('a', () => { /* p */ });\n"),
        ("a.py", "def test_a():\n    # p\n    'q'\n    # s\n    pass  # t\n"),
        ("a.go", "package a\n\nfunc TestA(t *testing.T) {\n\t// p\n}\n"),
        ("a.rs", "#[test]\nfn a() {\n    // p\n}\n"),
    ],
)
def test_a_test_body_keeps_its_comments(bench: Bench, name: str, text: str) -> None:
    source = bench.source(text, name)
    files, _ = bench.edits(by_recipe("test-bodies", {}), [source])
    made = bench.source(files[0].rewritten(source.data).decode() if files else text, name)
    assert [made.slice(*comment) for comment in made.comments] == [source.slice(*one) for one in source.comments]
