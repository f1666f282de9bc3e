"""What strict parsers read in the end: a fill is valid for them where any is, and what was broken is nobody's fault."""

import json
import time
import tomllib
from collections.abc import Callable

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.drive import fill, noisy, require

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import Region
from lacuna_model.languages.strict import StrictParsers
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.strict import Strict


def parsers(name: str) -> StrictParsers:
    own = require(name).strict
    assert own is not None
    return own


READ: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
# A text with its gap, a fill that its parser refuses, and one that it takes.
REFUSED = {
    "json: two roots": ("json", '{"a": 1}\n', "\n", "{}", " "),
    "json: a root in front": ("json", "", '\n{"a": 1}\n', "1", " "),
    "json: the end of a line in a string": ("json", '{"a": "', '"}\n', "b\nc", "b\\nc"),
    "json: a control character": ("json", '{"a": "', '"}\n', "\x01", "\\u0001"),
    "json: a tab in a key": ("json", '{"', '": 1}\n', "\t", "a"),
    "json: a lone comma": ("json", '{"a": 1', "}\n", ",", ', "b": 2'),
    "toml: no key": ("toml", "", " = 0.5\n", "", "a"),
    "toml: a table twice": ("toml", "[", "]\n[a]\n", "a", "b"),
    "toml: a table of a value": ("toml", "a = 1\n[", "]\n", "a.b", "b.a"),
    "toml: a key of another table's": ("toml", "a.b = 1\n[", "]\n", "a", "b"),
    "toml: a table in a list's place": ("toml", "[[a]]\n[", "]\n", "a", "b"),
    "toml: a key twice in braces": ("toml", "a = {b = 1, ", " = 2}\n", "b", "c"),
    "toml: no date": ("toml", "a = ", "\n", "2020-13-41", "2020-12-01"),
    "yaml: an unknown anchor": ("yaml", "a: &b 1\nc: *", "\n", "d", "b"),
    "yaml: a key that is no value": ("yaml", "a:\n  ", ": 1\n", "[b]", "b"),
    "yaml: a tab in front": ("yaml", "a:\n", "\n", "\tb: 1", "  b: 1"),
    "yaml: no date": ("yaml", "a: ", "\n", "2020-13-41", "2020-12-01"),
}
# Files that no parser takes with anything in the gap, or only a laxer one, and a fill that is no worse.
ELSEWHERE = {
    "json: comments": ("json", '// a\n{\n  "b": ', " /* c */\n}\n", "1"),
    "json: a key twice above": ("json", '{"a": 1, "a": 2, "b": ', "}\n", "3"),
    "json: a broken member below": ("json", '{"a": ', ', "b": 01}\n', "1"),
    "toml: a table twice above": ("toml", "[a]\n[a]\nb = ", "\n", "1"),
    "toml: a broken line below": ("toml", "a = ", "\nb = = 1\n", "1"),
    "yaml: several documents": ("yaml", "a: 1\n---\nb: ", "\n", "2"),
    "yaml: tags of an application": ("yaml", "a: !Ref b\nc: ", "\n", "1"),
    "yaml: an unknown anchor above": ("yaml", "a: *b\nc: ", "\n", "1"),
}


def document(name: str, before: str, after: str) -> Document:
    place = len(before.encode())
    return Document((before + after).encode(), [(place, place)], require(name))


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_parser_refuses_is_refused(case: str) -> None:
    name, before, after, bad, good = REFUSED[case]
    for text, valid in ((bad, False), (good, True)):
        assert _is_read(name, before + text + after) == valid
        assert document(name, before, after).check_fresh([text.encode()]).valid == valid


@pytest.mark.parametrize("case", REFUSED)
def test_nor_is_it_taken_in_the_end(case: str) -> None:
    name, before, after, bad, _ = REFUSED[case]
    own = document(name, before, after)
    own.displace()
    own.relax()
    assert not own.check_fresh([bad.encode()]).valid or bad == ""  # to leave a file as it was is never wrong


@pytest.mark.parametrize("case", ELSEWHERE)
def test_what_is_broken_elsewhere_is_held_against_no_fill(case: str) -> None:
    name, before, after, text = ELSEWHERE[case]
    own = document(name, before, after)
    own.relax()
    assert own.check([text.encode()]).valid
    assert own.check_fresh([text.encode()]).valid


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_the_model_says_the_answer_is_read(case: str, tokens: TokenText) -> None:
    name, before, after, bad, _ = REFUSED[case]
    text, place = (before + after).encode(), len(before.encode())
    for seed in range(6):
        rng = np.random.default_rng(seed)
        region = Region(place, place, max_tokens=16)
        model = noisy([list(tokens.encode(bad))], tokens, rng, seed % 3 / 2)
        verdict = fill(SyntaxConstraint(text, [region], require(name), tokens), model, [16], tokens.eog_id)
        if verdict.status == "ok":
            assert verdict.fills is not None
            assert verdict.fills[0] == "" or _is_read(name, before + verdict.fills[0] + after)


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
    Strict(b"", [(0, 0)], parsers(name)).fault(text.encode(), soon=False)
    assert time.thread_time() - began < 20  # what is quadratic takes minutes


@pytest.mark.parametrize("name", READ)
@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes_are_judged(name: str, before: bytes, filled: bytes) -> None:
    strict = Strict(before, [(len(before), len(before))], parsers(name))
    fault = strict.fault(before + filled, soon=False)
    assert fault is None or 0 <= fault.start <= len(before + filled)


def _is_read(name: str, text: str) -> bool:
    try:
        READ[name](text)
    except (ValueError, yaml.YAMLError):
        return False
    return True
