import pytest
from tests.server.refactor.bench import Bench, Scripted, marked

from lacuna_model.core.params import Region
from lacuna_model.syntax.region import regex_grammar
from lacuna_server.refactor.recipes import by_recipe

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
