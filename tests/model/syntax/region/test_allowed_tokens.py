"""The tokens that a region's regular expression or schema allows, and a model that chooses among them."""

import gc
import json
import weakref

import pytest
from tests.model.fim import tiny_fim

from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.syntax import allowed_tokens
from lacuna_model.tokens.tokenizer import Tokenizer

SCHEMA = json.dumps(
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
)


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


def test_a_schema_allows_what_it_describes(tokenizer: Tokenizer) -> None:
    inside = texts(tokenizer, '{"a":', json_schema=SCHEMA)
    assert inside is not None
    assert b"1" in inside
    assert b"x" not in inside
    assert b"$" in (texts(tokenizer, 'x = {"a":1}', b"x = ", json_schema=SCHEMA) or ())


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
