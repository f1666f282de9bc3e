from hypothesis import strategies as st

from lacuna_model.core.context import Gap
from lacuna_model.core.stopping import LineLimit, StopRule
from lacuna_model.decode.fill import Fill
from lacuna_model.tokens.tokenizer import Tokenizer

BLOCK = StopRule.between("def f(x):\n", "    return y\n")


def holding(text: str, tokenizer: Tokenizer, stop: StopRule | None = None, *, least: int = 0, prefix: str = "") -> Fill:
    """A fill that holds a text behind the healed ``prefix``."""
    return Fill(Gap(0, prefix.encode()), 200, least, stop, tokens=tokenizer.encode(prefix + text))


def ends(fill: Fill, tokenizer: Tokenizer, coming: str = "", *, ended: bool = False) -> list[str]:
    """The texts with which the rule may end a fill, with the ``coming`` text."""
    more = tokenizer.encode(coming) + [tokenizer.eog_id] * ended
    return [tokenizer.decode(tokens) for tokens in fill.ends(tokenizer, more)]


TOKENS = st.lists(st.integers(10, 99), max_size=5)


def test_a_repeat_is_found_after_the_healed_text(tokenizer: Tokenizer) -> None:
    rule = StopRule.between("if x:\n    ", "\n    y = 1\n")
    assert ends(holding("x = 1\n    y = 1\n", tokenizer, rule, prefix="    "), tokenizer) == ["    x = 1"]
    unhealed = Fill(Gap(0, b"if x:\n    "), 99, 0, rule, tokens=tokenizer.encode("if x:\n  "))
    assert (unhealed.text(tokenizer), ends(unhealed, tokenizer)) == (None, [])


def test_a_fill_may_end_within_the_token_that_comes(tokenizer: Tokenizer) -> None:
    fill = holding("Hello", tokenizer, StopRule.between('print("', '")\n'))
    assert ends(fill, tokenizer) == []
    assert ends(fill, tokenizer, '!")\n') == ends(fill, tokenizer, '!")', ended=True) == ["Hello!"]
    assert ends(fill, tokenizer, '!"') == ends(fill, tokenizer, ended=True) == []


def test_the_first_places_where_a_fill_may_end_and_the_last_are_named(tokenizer: Tokenizer) -> None:
    rule = StopRule.between("def f(x):\n    ", "z\n", None, LineLimit(5, keeps_newline=True))
    assert ends(holding("z\n" * 6 + "a", tokenizer, rule), tokenizer) == ["", "z\n", "z\n" * 5]
