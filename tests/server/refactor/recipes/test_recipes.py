"""Ready-made refactors: docstrings, test-bodies, annotations, logging and parameter."""

import pytest
from tests.server.refactor.bench import Bench, Scripted, marked

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.syntax.region import regex_grammar
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


ANNOTATE = by_recipe("annotations", {})
INT = Scripted(lambda region: "int")


@pytest.mark.parametrize(
    "text",
    [
        "def f(a«: int», b«: int »=« »1, *c«: int», d«: int | None »=« »None, **e«: int»)« -> int»:\n    return a\n",
        "def f(a«: str »=« »'x', b«: bytes »=« »b'', c«: float »=« »1.5)« -> None»:\n    pass\n",
        "def f(d«: bool »=« »True, e«: list »=« »[], f«: dict »=« »{})« -> None»:\n    pass\n",
        "class A:\n    def f(self, a«: int»)« -> None»:\n        return\n",
        "class A:\n    @staticmethod\n    def g(a«: int»)« -> int»: ...\n",
        "class A:\n    @classmethod\n    def h(cls)« -> int»:\n        raise ValueError\n",
        "def f(a«: int»=  # why\n      1, b«: list »=« »[\n    1,  # one\n])« -> int»:\n    return a\n",
        "def f(a: str) -> str:\n    return lambda b: b\n",
        "def f():\n    yield 1\n",
        "def f()« -> None»:\n    return None\n",
        "def f()« -> int | None»:\n    if g():\n        return\n    return 1\n",
        "def f()« -> int | None»:\n    if g():\n        return None\n    return 1\n",
        "class A:\n    def f(  # why\n        self,\n        a«: int»,\n    )« -> int»:\n        return a\n",
        "class A:\n    @abstractmethod\n    def f(self)« -> int»:\n        'What is done.'\n",
        "def f(a«: bytes »=« »b'a' b'b')« -> None»:\n    pass\n",
        "def f()« -> None»:\n    def g()« -> int»:\n        return 1\n    g()\n",
    ],
)
def test_annotations_come_from_the_code_or_from_a_fill(bench: Bench, text: str) -> None:
    before, after = marked(text)
    assert bench.apply(ANNOTATE, before, answer=INT) == after


@pytest.mark.parametrize(
    ("body", "is_left"),
    [
        ("for a in b:\n    return a", True),
        ("if a:\n    return 1\nelif b:\n    return 2", True),
        ("if a:\n    return 1\nelif b:\n    return 2\nelse:\n    raise ValueError", False),
        ("if a:\n    return 1\nelif b:\n    pass\nelse:\n    return 2", True),
        ("while True:\n    if a:\n        return 1", False),
        ("while True:\n    if a:\n        return 1\n    break", True),
        ("while a:\n    return 1", True),
        ("with a:\n    return 1", False),
        ("try:\n    return 1\nexcept A:\n    pass", True),
        ("try:\n    return 1\nexcept A:\n    raise", False),
        ("try:\n    a()\nexcept A:\n    raise\nelse:\n    return 1", False),
        ("try:\n    a()\nfinally:\n    return 1", False),
        ("match a:\n    case 1:\n        return 1", True),
        ("match a:\n    case 1:\n        return 1\n    case _:\n        return 2", False),
        ("return 1\na()", False),
    ],
)
def test_a_function_that_may_reach_its_end_may_return_none(bench: Bench, body: str, is_left: bool) -> None:
    text = "def f():\n    " + body.replace("\n", "\n    ") + "\n"
    wanted = text.replace("()", "() -> int | None" if is_left else "() -> int", 1)
    assert bench.apply(ANNOTATE, text, answer=INT) == wanted


def holes(bench: Bench, text: str) -> list[Region]:
    answer = Scripted(lambda region: "int")
    bench.edits(ANNOTATE, [bench.source(text)], answer)
    return [region for request in answer.requests for region in request.regions]


@pytest.mark.parametrize(
    ("head", "known", "unknown"),
    [
        ("", ["int", "list[str]", "dict[str, int]", "tuple[int, str]"], ["Path", "List[int]", "Later", "int, str"]),
        ("class Path:\n    pass\n\n\n", ["Path", "list[Path]"], ["Later"]),
        ("from pathlib import Path\n\n\n", ["int"], ["Path"]),
        ("from __future__ import annotations\nfrom a import B as P, Path\n\n\n", ["Path", "Later"], ["P", "Else"]),
    ],
)
def test_only_types_that_exist_at_a_place_can_be_filled_there(
    bench: Bench, head: str, known: list[str], unknown: list[str]
) -> None:
    (hole,) = holes(bench, head + "def f(a) -> None:\n    pass\n\n\nclass Later:\n    pass\n")
    grammar = regex_grammar(hole.regex)
    assert hole.single_line
    assert [text for text in known if not grammar.matches(text.encode())] == []
    assert [text for text in unknown if grammar.matches(text.encode())] == []


REPLACE = by_recipe("logging", {})
INFO = Scripted(lambda region: region.regex.split("|")[0])
HEAD = "import logging\n\nlogger = logging.getLogger(__name__)\n"


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ('print("done")', 'logger.debug("done")'),
        ('print(f"{x} %")', 'logger.debug(f"{x} %")'),
        ("print(x)", 'logger.debug("%s", x)'),
        ('print("got", x, "of 100 %")', 'logger.debug("got %s of 100 %%", x)'),
        ('print("100 %", "done")', 'logger.debug("100 % done")'),
        ("print('it', x)", 'logger.debug("it %s", x)'),
        ("print('\"', x)", 'logger.debug("%s %s", \'"\', x)'),
        ("print(x, y, flush=True)", 'logger.debug("%s %s", x, y)'),
        ("print(x, file=sys.stderr)", 'logger.warning("%s", x)'),
        ("print('a', f(  # why\n    1))", 'logger.debug("a %s", f(  # why\n    1))'),
        ('print("""a\n  b""")', 'logger.debug("""a\n  b""")'),
    ],
)
def test_the_format_string_is_made_from_the_arguments(bench: Bench, call: str, after: str) -> None:
    assert bench.apply(REPLACE, f"{HEAD}\n{call}\n", answer=INFO) == f"{HEAD}\n{after}\n"


@pytest.mark.parametrize(
    "call", ["print()", "print(*x)", "print(x, end='')", "print(x, file=f)", "y = print(x)", "print(x for x in y)"]
)
def test_a_call_that_logging_cannot_express_is_left_alone(bench: Bench, call: str) -> None:
    files, left_out = bench.edits(REPLACE, [bench.source(f"{call}\n")])
    assert files == []
    assert bool(left_out) == call.startswith("print")


CALL = '«print(1)→logger.debug("%s", 1)»'


@pytest.mark.parametrize(
    "text",
    [
        f"«{HEAD}\n\n»{CALL}\n",
        f'"""Doc."""\n\n«{HEAD}\n\n»{CALL}\n',
        'import logging\n\nlog = logging.getLogger()\n«print(1)→log.debug("%s", 1)»\n',
        f"from __future__ import annotations\n«{HEAD}»{CALL}\n",
        f"import logging  # first\nimport os  # os\n«\nlogger = logging.getLogger(__name__)\n»{CALL}  # shown\n",
        f"import logging\nimport os«\n\nlogger = logging.getLogger(__name__)»\r\n{CALL}\n",
    ],
)
def test_the_logger_of_the_module_is_reused_or_added(bench: Bench, text: str) -> None:
    before, after = marked(text)
    assert bench.apply(REPLACE, before, answer=INFO) == after


FILLED = Scripted(lambda region: "30")


def add(parameter: str = "timeout: float", function: str = "f", **settings: str) -> dict[str, str]:
    return {"function": function, "parameter": parameter, **settings}


@pytest.mark.parametrize(
    "text",
    [
        "def f(«timeout: float»): pass\nf(«timeout=30»)\n",
        "def f(a, b«, timeout: float»,): pass\nf(1«, timeout=30»,)\n",
        "def f(a, b=1«, *, timeout: float»): pass\nf(1, g(2)«, timeout=30»)\n",
        "def f(a, *b«, timeout: float», **c): pass\nself.f(1«, timeout=30»)\n",
        "def f(a, /, b, *, c«, timeout: float»): pass\nf(1, timeout=2)\n",
        "def f(\n    a«, timeout: float»,  # one\n): pass\nf(f(1«, timeout=30»)«, timeout=30»)\n",
        "def f(a«, timeout: float»): pass\nf(\n    1«, timeout=30»,  # one\n)\n",
    ],
)
def test_the_parameter_is_added_to_the_definition_and_the_argument_to_callers(bench: Bench, text: str) -> None:
    before, after = marked(text)
    assert bench.apply(by_recipe("parameter", add()), before, answer=FILLED) == after


def test_a_known_value_is_not_requested_from_the_model(bench: Bench) -> None:
    text = "def f(a): f(a)\n\n\ndef g(timeout): f(1)\n\n\nf(2)\n"
    answer = Scripted(lambda region: "30")
    made = bench.apply(by_recipe("parameter", add()), text, answer=answer)
    inner = "def f(a, timeout: float): f(a, timeout=timeout)\n\n\ndef g(timeout): f(1, timeout=timeout)\n\n\n"
    assert made == f"{inner}f(2, timeout=30)\n"
    assert [len(request.regions) for request in answer.requests] == [1]
    silent, text = Scripted(lambda region: None), "def f(): pass\nf()\n"
    made = bench.apply(by_recipe("parameter", add(value="T / 2")), text, answer=silent)
    assert made == "def f(timeout: float): pass\nf(timeout=T / 2)\n"
    assert bench.apply(by_recipe("parameter", add("timeout=5")), text, answer=silent) == "def f(timeout=5): pass\nf()\n"


def test_callers_in_other_files_and_methods_of_a_class_are_updated(bench: Bench) -> None:
    one = bench.source("class A:\n    def f(self): pass\n\n\nclass B:\n    def f(self): pass\n", "one.py")
    two = bench.source("import one\n\none.A().f()\n", "two.py")
    files, _ = bench.edits(by_recipe("parameter", add(function="A.f")), [one, two], FILLED)
    assert files[0].rewritten(one.data).decode().startswith("class A:\n    def f(self, timeout: float): pass")
    assert files[1].rewritten(two.data).decode().endswith("one.A().f(timeout=30)\n")


def test_callers_that_cannot_be_updated_are_reported(bench: Bench) -> None:
    source = bench.source("def f(*a): pass\nf(**k)\nf(x for x in y)\n")
    _, left_out = bench.edits(by_recipe("parameter", add()), [source], FILLED)
    assert [line.split(": ")[0] for line in left_out] == ["code.py:2:0", "code.py:3:0"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "needs the settings function=NAME"),
        (add("1x"), "parameter=1x is not a Python parameter"),
        (add("a, b"), "is not a single Python parameter"),
        (add("x, **k"), "is not a single Python parameter"),
        (add(value="("), r"value=\( is not a Python expression"),
        (add(function="g"), "no function is called g"),
        (add(function="h"), r"several functions are called h: code.py:2, code.py:3; use Class.name"),
        (add("a"), "f already has a parameter a"),
    ],
)
def test_bad_settings_are_refused_with_the_reason(bench: Bench, settings: dict[str, str], message: str) -> None:
    source = bench.source("def f(a): pass\ndef h(): pass\ndef h(): pass\n")
    with pytest.raises(RequestError, match=message) as caught:
        bench.edits(by_recipe("parameter", settings), [source])
    assert "\n" not in str(caught.value)
