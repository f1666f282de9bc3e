"""Strict parsers refuse a fill with which they cannot read the file, but not for errors that are elsewhere."""

import json
import time
import tomllib
from collections.abc import Callable

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.syntax.cases import Case, load
from tests.model.syntax.drive import fill, noisy, require

from lacuna_model.core.constraint import TokenText
from lacuna_model.core.params import Region
from lacuna_model.languages.language import StrictParsers
from lacuna_model.syntax import SyntaxConstraint
from lacuna_model.syntax.check.document import Document
from lacuna_model.syntax.check.strict import Strict


def parsers(name: str) -> StrictParsers:
    own = require(name).strict
    assert own is not None
    return own


READ: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
REFUSED = load("strict_parsers")


def document(case: Case) -> Document:
    return Document(case.text, [(case.place, case.place)], require(case.language))


@pytest.mark.parametrize("case", REFUSED)
def test_a_fill_that_the_parser_refuses_is_refused(case: Case) -> None:
    for fills, valid in ((case.refuses, False), (case.takes, True)):
        for text in fills:
            assert _is_read(case.language, case.before + text + case.after) == valid
            assert document(case).check_fresh([text.encode()]).valid == valid


@pytest.mark.parametrize("case", REFUSED)
def test_the_parser_reads_the_result_whatever_the_model_proposes(case: Case, tokens: TokenText) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        region = Region(case.place, case.place, max_tokens=16)
        model = noisy([list(tokens.encode(case.refuses[0]))], tokens, rng, seed % 3 / 2)
        constraint = SyntaxConstraint(case.text, [region], require(case.language), tokens)
        verdict = fill(constraint, model, [16], tokens.eog_id)
        if verdict.status == "ok":
            assert verdict.fills is not None
            assert verdict.fills[0] == "" or _is_read(case.language, case.before + verdict.fills[0] + case.after)


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
    Strict(b"", [(0, 0)], parsers(name)).faults(text.encode(), soon=False)
    assert time.thread_time() - began < 20  # quadratic time would be minutes


@pytest.mark.parametrize("name", READ)
@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_bytes_get_a_verdict(name: str, before: bytes, filled: bytes) -> None:
    strict = Strict(before, [(len(before), len(before))], parsers(name))
    for fault in strict.faults(before + filled, soon=False):
        assert 0 <= fault.start <= len(before + filled)


def _is_read(name: str, text: str) -> bool:
    try:
        READ[name](text)
    except (ValueError, yaml.YAMLError):
        return False
    return True
