"""What reads a file in the end refuses a fill with which it cannot read it, but not for errors that are elsewhere."""

import gc
import json
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.core import work
from lacuna_model.core.constraint import TokenText
from lacuna_model.languages.language import StrictParsers
from lacuna_model.languages.python import compiled
from lacuna_model.syntax.document import Document, Strict, python_compiles

from .cases import Case, load
from .drive import delivered, noisy, require

NEWER = [
    "type Pair[T] = tuple[T, T]\n",
    "class Box[T: int](Base):\n    item: T\n",
    'a = f"{b["c"]}"\n',
    'a = t"{b}"\n',
    "try:\n    pass\nexcept A, B:\n    pass\n",
]


def error(before: str, fill: str, after: str) -> bool:
    """Whether a fill has an error."""
    place = len(before.encode())
    return bool(Document((before + after).encode(), [(place, place)], require("python")).check([fill.encode()]))


def test_an_error_that_the_grammar_does_not_see_is_its_fills() -> None:
    assert error("x = 1\n", "return 1", "\n")
    assert not error("def f():\n    ", "return 1", "\n")
    assert error("", "try:", "\n    a()\nb()\n")
    assert error("x = 1\n", "try:\n    a()\n", "b()\nc()\n")
    assert error("", "# -*- coding: foo -*-", "\nx = 1\n")


def test_an_error_far_from_the_gap_is_no_fills_where_python_refuses_the_file() -> None:
    below = "\n    b = 1\n    c = 2\n    global a\n"
    assert error("def f():\n    ", "a = 1", below)
    assert not error("def f():\n    ", "a = 1", below + "return\n")


def test_a_fill_that_compiles_binds_no_other_where_python_refuses_the_file() -> None:
    before, after = b"import a\n\n", b"\n    print(x)\n    return x\n"
    document = Document(before + after, [(len(before), len(before))], require("python"))
    for fill in (b"x = 1\ndef x():", b"x = a.b()\nif x > 3:"):
        assert not document.check([fill])


def test_an_error_at_the_gap_of_a_file_that_python_refuses_takes_one_compile() -> None:
    asked, before = list[str](), work.spent()

    def ask(text: str) -> None:
        asked.append(text)
        compiled(text)

    own = replace(parsers("python"), parsers=(ask,))
    text = b"def f(a, a): pass\n" + b"x = 1\n" * 99 + b"return\n"
    assert Strict(text[18:], [(0, 0)], own).faults(text, [(0, 18)], soon=True)
    assert asked == [text.decode()]
    assert work.spent() - before < 300 * len(text)  # a parser of data has 400


@pytest.mark.parametrize("text", NEWER)
def test_a_file_that_the_interpreter_cannot_read_is_left_to_the_grammar(text: str) -> None:
    """It may be newer than the interpreter, and so may be what belongs in its gaps."""
    for wanted in ("x = 1", 'x = f"{b["c"]}"'):
        assert python_compiles(text.encode()) or not error(text, wanted, "\n")
        assert python_compiles(text.encode()) or not error("", wanted, "\n" + text)


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Garbage is collected, by code in Python, within every tree, and threads take turns there."""
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


class Cycle:
    """Garbage that runs code when it is collected."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        for _ in range(100):
            pass


@pytest.mark.usefixtures("interrupted")
def test_threads_that_compile_do_not_disturb_each_other() -> None:
    def read(text: str) -> None:
        for _ in range(20):
            Cycle()
            compiled(text)

    shallow, deep = "x = 1\n" * 40, "y = " + "(" * 40 + "1" + " + 2)" * 40 + "\n"
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(read, [shallow, deep * 4] * 10))


class Application(yaml.SafeLoader):
    """Reads documents whose tags an application knows."""


for tag in ("!", "tag:yaml.org,2002:python/"):
    Application.add_multi_constructor(tag, lambda loader, suffix, node: None)
Application.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def documents(text: str) -> object:
    """What an application reads of a text."""
    return list(yaml.load_all(text, Application))


READ: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads, "yaml": documents}
REFUSED = load("strict_parsers")


def parsers(name: str) -> StrictParsers:
    own = require(name).strict
    assert own is not None
    return own


@pytest.mark.parametrize("case", REFUSED)
def test_the_parser_reads_the_result_whatever_the_model_proposes(case: Case, tokens: TokenText) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        model = noisy([list(tokens.encode((case.refuses or case.takes)[0]))], tokens, rng, seed % 3 / 2)
        if found := delivered(case.language, case.before, case.after, model, tokens, room=16):
            READ[case.language](case.before + found + case.after)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("toml", "a." * 90_000 + "b = 1"),
        ("toml", "a = " + "[" * 50_000),
        ("yaml", "[" * 50_000),
        ("yaml", "&a " * 20_000),
        ("yaml", "".join(f"b{i}: &b{i} {{<<: [*b{max(i - 1, 0)}, *b{max(i - 1, 0)}]}}\n" for i in range(60))),
        ("json", "[" * 100_000),
        ("json", "/*" * 50_000),
        ("json", "9" * 5_000),
    ],
)
def test_any_text_is_read_in_bounded_time(name: str, text: str) -> None:
    began = time.thread_time()
    Strict(b"", [(0, 0)], parsers(name)).faults(text.encode(), [], soon=False)
    assert time.thread_time() - began < 20  # quadratic time would be minutes


@pytest.mark.parametrize("name", READ)
@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes_get_a_verdict(name: str, before: bytes, filled: bytes) -> None:
    strict = Strict(before, [(len(before), len(before))], parsers(name))
    for fault in strict.faults(before + filled, [], soon=False):
        assert 0 <= fault.start <= len(before + filled)
