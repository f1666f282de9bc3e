"""The rules of a region, alone and together with syntax, and a model that chooses among the tokens that they allow."""

import contextlib
import gc
import json
import re
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from tests.model.fim import tiny_fim
from tests.model.syntax.conftest import SmallTokens
from tests.model.syntax.drive import fill, noisy

from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.syntax import allowed_tokens, constraint_for
from lacuna_model.syntax.region import RegionRules, json_schema_grammar, regex_grammar
from lacuna_model.tokenizer import Tokenizer

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


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return tiny_fim.loaded().tokenizer


def texts(tokenizer: Tokenizer, written: str, prefix: bytes = b"", **rule: str) -> set[bytes] | None:
    """The texts of the tokens that may follow; the end-of-gap is "$"."""
    rule_tokens = allowed_tokens(Region(0, 0, **rule), prefix, tokenizer)
    assert rule_tokens is not None
    found = rule_tokens.after(tokenizer.encode(written))
    if found is None:
        return None
    return {b"$" if token == tokenizer.eog_id else tokenizer.token_bytes(int(token)) for token in found}


def test_tokens_that_begin_a_match_are_allowed(tokenizer: Tokenizer) -> None:
    first = texts(tokenizer, "", regex="None|error")
    assert first is not None
    assert {b"N", b"e"} <= first
    assert all(b"None".startswith(one) or b"error".startswith(one) for one in first)
    assert texts(tokenizer, "None", regex="^None$|error") == {b"$"}
    assert texts(tokenizer, "x", regex="None|error") is None


def test_the_healed_text_comes_first(tokenizer: Tokenizer) -> None:
    first = texts(tokenizer, "", b"= ", regex="[a-b]")
    assert first is not None
    assert all(one.startswith(b"=") for one in first)
    assert texts(tokenizer, "= a", b"= ", regex="[a-b]") == {b"$"}


def test_the_masks_of_a_model_do_not_keep_its_tokenizer() -> None:
    own = Tokenizer(tiny_fim.VOCABULARY)
    assert texts(own, "", regex="a|b") == {b"a", b"b"}
    dropped = weakref.ref(own)
    del own
    gc.collect()
    assert dropped() is None


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_model_likes_the_fill_matches(seed: int) -> None:
    """None of twelve likely tokens of a random model need begin a match."""
    text = "x = \ny = 2\n"
    asked = InfillRequest(
        text,
        (Region(4, 4, max_tokens=8, regex="None|error|[0-9]{2}"),),
        path="a.py",
        options=DecodeOptions(deadline_ms=0),
    )
    result = Engine(tiny_fim.loaded(seed)).fill(asked)
    assert result.status == "ok"
    (fill,) = result.fills
    assert fill in ("None", "error") or (len(fill) == 2 and fill.isdigit())
