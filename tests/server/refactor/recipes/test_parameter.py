import pytest
from tests.server.refactor.bench import Bench, Scripted, marked

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.recipes import by_recipe

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
