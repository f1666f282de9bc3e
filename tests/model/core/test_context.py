import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.core.context import Layout, heal, lay_out
from lacuna_model.tokens.tokenizer import Tokenizer

SEGMENTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=2, max_size=5)


def texts(tokenizer: Tokenizer, layout: Layout) -> list[str]:
    return [tokenizer.decode(segment) for segment in layout.segments]


def test_the_text_before_every_gap_is_healed(tokenizer: Tokenizer) -> None:
    layout = lay_out(["a", "bc", "dg", "f"], tokenizer)
    assert texts(tokenizer, layout) == ["", "b", "d", "f"]
    assert [(gap.index, gap.prefix) for gap in layout.gaps] == [(0, b"a"), (1, b"c"), (2, b"g")]


@pytest.mark.parametrize("segments", [("", ""), ("", "x"), ("x", ""), ("", "", ""), ("x", "", "", "y")])
def test_empty_segments_are_laid_out(tokenizer: Tokenizer, segments: tuple[str, ...]) -> None:
    layout = lay_out(segments, tokenizer)
    assert [gap.prefix for gap in layout.gaps] == [segment.encode() for segment in segments[:-1]]
    assert texts(tokenizer, layout) == [*[""] * (len(segments) - 1), segments[-1]]


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
def test_healing_takes_one_token_unless_the_text_ends_in_a_character_of_several_bytes(
    tokenizer: Tokenizer, text: str, prefix: bytes
) -> None:
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
def test_the_ids_left_after_healing_are_those_of_the_complete_text(
    real_tokenizer: Tokenizer, before: str, behind: str
) -> None:
    ids, prefix = heal(before, real_tokenizer)
    natural = real_tokenizer.encode(before + behind)
    assert natural[: len(ids)] == ids
    assert real_tokenizer.token_bytes(natural[len(ids)]).startswith(prefix)


@given(st.text("ab rt\n\t(.é😀", max_size=20))
def test_healed_text_begins_a_token_and_ends_the_text(real_tokenizer: Tokenizer, text: str) -> None:
    ids, prefix = heal(text, real_tokenizer)
    assert real_tokenizer.decode_bytes(ids) + prefix == text.encode()
    assert prefix.decode() in text
    assert not prefix or len(real_tokenizer.encode(prefix.decode())) == 1 or real_tokenizer.is_begun(prefix)


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
