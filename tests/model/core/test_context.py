import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.core.context import heal, lay_out
from lacuna_model.tokens.tokenizer import Tokenizer

SEGMENTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=2, max_size=5)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("", b""),
        ("x", b"x"),
        ("x = def", b" def"),
        ("if a:\n    ", b" "),
        ("if a:\n\t\t", b"\t"),
        ("if a:\n", b"\n"),
        ("caf\u00e9", b""),
        ("s = '\U0001f600", b""),
        ("s = '\U0001f600'", b"'"),
    ],
    ids=["nothing", "one-token", "word", "indent", "tabs", "line-end", "two-bytes", "four-bytes", "behind-four-bytes"],
)
def test_healing_takes_a_token_unless_it_would_cut_a_character(tokenizer: Tokenizer, text: str, prefix: bytes) -> None:
    ids, healed = heal(text, tokenizer)
    assert healed == prefix
    assert tokenizer.decode_bytes(ids) + prefix == text.encode()


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("if a:\n    ", "return"),
        ("if a:\n        ", "return"),
        ("if a:\n\n    ", "return"),
        ("if a:\r\n  ", "return"),
        ("if a: = ", "return"),
        ("    retu", "rn x"),
        ("import javasc", "ript"),
        ("x = Versio", "nSet()"),
        ("x = 1\n\n", "def f():"),
        ("}\n\n\n", "class A:"),
        ("def f():\n    x = 1\n\n", "    return x"),
        ("def f():\n    return 1\n\n\n", "def g():"),
    ],
)
def test_the_ids_left_after_healing_are_those_of_all_text(real_tokenizer: Tokenizer, before: str, behind: str) -> None:
    ids, prefix = heal(before, real_tokenizer)
    natural = real_tokenizer.encode(before + behind)
    assert natural[: len(ids)] == ids
    assert real_tokenizer.token_bytes(natural[len(ids)]).startswith(prefix)


@settings(deadline=None)
@given(SEGMENTS)
def test_a_layout_holds_all_the_text_in_order(tokenizer: Tokenizer, segments: list[str]) -> None:
    layout = lay_out(segments, tokenizer, opening=(1, 2))
    assert layout.opening == (1, 2)
    prefixes = [*(gap.prefix for gap in layout.gaps), b""]
    read = [tokenizer.decode_bytes(ids) + given for ids, given in zip(layout.segments, prefixes, strict=True)]
    assert [text.decode() for text in read] == segments
    for gap in layout.gaps:
        gap.prefix.decode()
        assert not gap.prefix or any(tokenizer.token_bytes(i) == gap.prefix for i in range(tokenizer.vocab_size))
