import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.core.context import WindowChooser, WindowOptions, heal, lay_out
from lacuna_model.tokenizer import Tokenizer

LINES = [f"value_{i} = total({i})  # {'long ' * (i % 4)}\n" for i in range(20_000)]
LONG = "".join(LINES).encode()
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("x \n"), max_size=200)


def num_tokens(tokenizer: Tokenizer, text: bytes) -> int:
    return len(tokenizer.encode(text.decode()))


@pytest.fixture
def window() -> WindowChooser:
    return WindowChooser(WindowOptions(before=120, after=60))


@given(st.integers(1, 100_000))
def test_a_window_of_so_many_tokens_has_the_usual_proportions(tokens: int) -> None:
    usual, found = WindowOptions(), WindowOptions.of(tokens)
    assert found.before + found.after + found.snippets == tokens
    assert abs(found.before * usual.after - found.after * usual.before) <= usual.before + usual.after
    assert WindowOptions.of(usual.before + usual.after + usual.snippets) == usual


def test_a_long_file_is_cut_at_lines(window: WindowChooser, tokenizer: Tokenizer) -> None:
    before, after = window.before(LONG, tokenizer), window.after(LONG, tokenizer)
    assert LONG.endswith(b"\n" + before)
    assert LONG.startswith(after)
    assert after.endswith(b"\n")
    assert 60 <= num_tokens(tokenizer, before) <= 120
    assert 30 <= num_tokens(tokenizer, after) <= 60


def test_the_window_stays_in_place_until_it_outgrows_its_budget(window: WindowChooser, tokenizer: Tokenizer) -> None:
    text = LONG
    kept = window.before(text, tokenizer)
    moves, starts = 0, {LONG.find(kept)}
    for _ in range(300):
        text += b"ab\n"
        grown = window.before(text, tokenizer)
        assert text.endswith(grown)
        assert num_tokens(tokenizer, grown) <= 160
        moves += grown != kept + b"ab\n"
        starts.add(len(text) - len(grown))
        kept = grown
    # 900 tokens were typed, and each move makes room for about 60.
    assert 5 <= moves <= 20
    assert len(starts) == moves + 1


def test_the_window_follows_a_cursor_that_moves_up(window: WindowChooser, tokenizer: Tokenizer) -> None:
    kept = window.before(LONG, tokenizer)
    above = LONG[: len(LONG) - len(kept) + 50]
    assert 60 <= num_tokens(tokenizer, window.before(above, tokenizer)) <= 120


@settings(deadline=None, max_examples=200)
@given(st.lists(ANY_TEXT, min_size=1, max_size=4), st.integers(1, 60))
def test_a_window_is_text_within_its_budget(tokenizer: Tokenizer, texts: list[str], budget: int) -> None:
    window = WindowChooser(WindowOptions(before=budget, after=budget))
    for text in texts:
        data = text.encode()
        before, after = window.before(data, tokenizer), window.after(data, tokenizer)
        assert data.endswith(before)
        assert data.startswith(after)
        assert num_tokens(tokenizer, before) <= budget * 4 // 3
        assert num_tokens(tokenizer, after) <= budget
        # The same text again gives the same window.
        assert window.before(data, tokenizer) == before


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
