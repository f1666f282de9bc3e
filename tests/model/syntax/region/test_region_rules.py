"""The rules of a region (pattern, schema, words, lines), alone and together with syntax."""

import contextlib
import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import fill, noisy

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import Region
from lacuna_model.syntax import constraint_for
from lacuna_model.syntax.region.byte_grammar import json_schema_grammar, regex_grammar
from lacuna_model.syntax.region.region_rules import RegionRules

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
        "required": ["name", "size"],
        "additionalProperties": False,
    }
)


def run(region: Region, text: str, path: str, truth: str, tokens: SmallTokens, noise: float) -> str | None:
    constraint = constraint_for(text.encode(), [region], path, "", tokens, syntax=True)
    assert constraint.active
    model = noisy([tokens.encode(truth)], tokens, np.random.default_rng(3), noise)
    verdict = fill(constraint, model, [region.max_tokens], tokens.eog_id)
    return None if verdict.fills is None else verdict.fills[0]


@pytest.mark.parametrize("noise", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("path", ["a.py", "a.unknown"])
def test_a_fill_matches_the_pattern(tokens: SmallTokens, noise: float, path: str) -> None:
    region = Region(4, 4, max_tokens=24, regex=r"[a-z]+_\d{2,4}")
    found = run(region, "x = \n", path, "total_123", tokens, noise)
    assert found is not None
    assert re.fullmatch(region.regex, found)


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_a_fill_follows_the_json_schema(tokens: SmallTokens, noise: float) -> None:
    region = Region(7, 7, max_tokens=60, json_schema=SCHEMA)
    found = run(region, '{"a" : }\n', "a.json", '{"name": "x", "size": 3}', tokens, noise)
    assert found is not None
    assert set(json.loads(found)) == {"name", "size"}


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_a_fill_has_the_required_words_and_no_forbidden_one(tokens: SmallTokens, noise: float) -> None:
    region = Region(4, 4, max_tokens=20, must_contain=("amount",), must_not_contain=("self",))
    found = run(region, "x = \n", "a.py", "amount + 1", tokens, noise)
    if found is None:
        assert noise == 1.0  # a model that knows nothing
    else:
        assert "amount" in found
        assert "self" not in found


def test_lines_beyond_the_limit_are_not_taken() -> None:
    rules = RegionRules(Region(0, 0, max_lines=2), b"\nrest")
    assert rules.cut(b"a\nb\nc\n") == b"a\nb"
    assert rules.cut(b"a\nb") == b"a\nb"
    assert RegionRules(Region(0, 0, max_lines=2), b"rest").cut(b"a\nb\nc\n") == b"a\nb\n"
    assert RegionRules(Region(0, 0, single_line=True), b"rest").cut(b"a\r\nb") == b"a"
    assert RegionRules(Region(0, 0), b"").cut(b"a\nb") == b"a\nb"


@pytest.mark.parametrize("pattern", ["(?=x)y", "(a", r"(a)\1"])
def test_patterns_that_could_hang_are_refused(pattern: str) -> None:
    with pytest.raises(RequestError, match="is not supported"):
        regex_grammar(pattern)


def nested(depth: int) -> str:
    return '{"type": "array", "items": ' * depth + "true" + "}" * depth


@pytest.mark.parametrize("schema", ["{", '{"type": 3}', nested(2_000), nested(100_000), "[" * 100_000])
def test_bad_schemas_are_refused_in_one_line(schema: str) -> None:
    with pytest.raises(RequestError, match="json_schema") as caught:
        json_schema_grammar(schema)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [regex_grammar, json_schema_grammar])
@pytest.mark.parametrize("text", ["[" * 5_000, '"' + "a" * 3_000_000 + '"'])
def test_what_is_said_of_a_long_pattern_or_schema_is_short(make: Callable[[str], object], text: str) -> None:
    with pytest.raises(RequestError, match=r"regex|json_schema") as caught:
        make(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("depth", [10, 300, 900])
def test_a_deep_schema_is_followed_or_refused(depth: int) -> None:
    with contextlib.suppress(RequestError):
        json_schema_grammar(nested(depth)).completion(b"")


def test_a_text_that_cannot_match_has_no_completion() -> None:
    assert regex_grammar(r"[a-z]+_\d{2,4}").completion(b"AB") is None
