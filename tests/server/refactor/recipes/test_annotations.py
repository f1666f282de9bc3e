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
        "def f()« -> None»:\n    def g()« -> int»:\n        return 1\n    g()\n",
    ],
)
def test_annotations_come_from_the_code_or_from_a_fill(bench: Bench, text: str) -> None:
    before, after = marked(text)
    assert bench.apply(ANNOTATE, before, answer=INT) == after


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
