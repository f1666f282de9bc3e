import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.scripted import SECOND, sure

from lacuna_model.core.constraint import UNKNOWN_LOG_PROB, FillSoFar, Run, Taken
from lacuna_model.core.context import Gap
from lacuna_model.core.params import Region
from lacuna_model.core.stopping import LineLimit, StopRule
from lacuna_model.decode.fill import Fill, FillStatus
from lacuna_model.tokens.tokenizer import Tokenizer

EOG = 2
BLOCK = StopRule.between("def f(x):\n", "    return y\n")


def holding(text: str, tokenizer: Tokenizer, stop: StopRule | None = None, *, least: int = 0, prefix: str = "") -> Fill:
    """A fill that holds a text behind the healed ``prefix``."""
    return Fill(Gap(0, prefix.encode()), 200, least, stop, tokens=tokenizer.encode(prefix + text))


def ends(fill: Fill, tokenizer: Tokenizer, coming: str = "", *, ended: bool = False) -> list[str]:
    """The texts with which the rule may end a fill, with the ``coming`` text."""
    more = tokenizer.encode(coming) + [tokenizer.eog_id] * ended
    return [tokenizer.decode(tokens) for tokens in fill.ends(tokenizer, more)]


TOKENS = st.lists(st.integers(10, 99), max_size=5)


@given(TOKENS, TOKENS, TOKENS, st.integers(0, 10), st.booleans())
def test_a_fill_becomes_what_is_taken(
    known: list[int], read: list[int], write: list[int], kept: int, end: bool
) -> None:
    fill, kept = Fill(Gap(0), 99, tokens=[*known]), min(kept, len(known) + len(read))
    expected = [*[*known, *read][:kept], *write]
    fill.apply(Taken(kept, tuple(write), ends=end), sure(read), EOG)
    assert fill.tokens == expected
    assert (fill.is_open, fill.has_ended) == (not end, end)
    assert fill.written() == FillSoFar(tuple(expected), 99, ended=end)
    assert fill.rivals.keys() <= fill.log_probs.keys() == {*range(min(len(known), kept), len(expected) + end)}


def test_the_log_probability_and_the_rival_of_the_best_token_are_kept() -> None:
    fill, best, behind = Fill(Gap(0), 9, tokens=[5]), np.log(0.95), pytest.approx(np.log(0.95 / 0.04))
    fill.apply(Taken(3), sure([7, 8, 9]), EOG)
    assert fill.log_probs == {1: pytest.approx(best), 2: pytest.approx(best)}
    assert fill.rivals == {1: (behind, SECOND), 2: (behind, SECOND)}


def test_a_token_that_the_constraint_chose_has_no_rival() -> None:
    """The first one is as likely as the model said, if it was a candidate. Nothing is known of those behind it."""
    fill = Fill(Gap(0), 9, tokens=[5])
    fill.apply(Taken(1, (SECOND, 8, 9)), sure([7, 8, EOG]), EOG)
    assert fill.log_probs == {1: pytest.approx(np.log(0.04)), 2: UNKNOWN_LOG_PROB, 3: UNKNOWN_LOG_PROB}
    assert fill.rivals == {}


def test_it_is_known_who_has_ended_a_fill() -> None:
    for taken, run, status in (
        (Taken(1, ends=True), sure([7, EOG]), FillStatus.ENDED_BY_MODEL),
        (Taken(0, ends=True), sure([7, EOG]), FillStatus.ENDED_BY_CONSTRAINT),
        (Taken(0, (8,), ends=True), sure([7, EOG]), FillStatus.ENDED_BY_CONSTRAINT),
    ):
        fill = Fill(Gap(0), 9)
        fill.apply(taken, run, EOG)
        assert fill.status is status
    fill.end_with([7])
    assert (fill.tokens, fill.status, fill.has_ended) == ([7], FillStatus.ENDED_BY_RULE, True)
    assert not Fill(Gap(0), 9, status=FillStatus.STUCK).has_ended


def test_a_token_that_is_no_candidate_has_the_least_log_probability() -> None:
    run = Run(np.array([[7, 8]]), np.array([[-0.1, -9000]], dtype=np.float32))
    assert [run.log_prob(place, token) for place, token in ((0, 7), (0, 8), (0, 9), (1, 7), (-1, 7))] == [
        pytest.approx(-0.1), *[UNKNOWN_LOG_PROB] * 4
    ]  # fmt: skip


def test_the_given_first_tokens_are_due_as_far_as_they_fit() -> None:
    fill = Fill(Gap(0), 3, begin=(10, 11, 12, 13))
    assert fill.begun == (10, 11, 12)
    fill.tokens = [10, 11]
    assert fill.begun == (12,)
    fill.tokens = [10, 11, 12, 13]
    assert fill.begun == ()


@pytest.mark.parametrize(
    ("text", "ended", "kept"),
    [
        ("    y = x\n    return y\n", False, ["    y = x\n"]),
        ("    y = x\n    return y", False, []),
        ("    y = x\n    return y", True, ["    y = x\n"]),
        ("    y = x\nprint(", False, ["    y = x\n"]),
        ("    y = x\n", True, []),
    ],
    ids=["next-line", "unfinished", "last", "leaves-block", "nothing-to-cut"],
)
def test_a_fill_ends_where_it_repeats_the_suffix(tokenizer: Tokenizer, text: str, ended: bool, kept: list[str]) -> None:
    fill = holding(text, tokenizer, BLOCK)
    assert ends(fill, tokenizer, ended=ended) == kept
    fill.status = FillStatus.ENDED_BY_MODEL if ended else FillStatus.OPEN
    assert ends(fill, tokenizer) == kept


def test_a_repeat_is_found_after_the_healed_text(tokenizer: Tokenizer) -> None:
    rule = StopRule.between("if x:\n    ", "\n    y = 1\n")
    assert ends(holding("x = 1\n    y = 1\n", tokenizer, rule, prefix="    "), tokenizer) == ["    x = 1"]
    unhealed = Fill(Gap(0, b"if x:\n    "), 99, 0, rule, tokens=tokenizer.encode("if x:\n  "))
    assert (unhealed.text(tokenizer), ends(unhealed, tokenizer)) == (None, [])


@pytest.mark.parametrize(
    ("region", "after", "kept"),
    [
        (Region(0, 0, single_line=True), "\n    return y\n", "y = x"),
        (Region(0, 0, max_lines=2), "\n    return y\n", "y = x\n    z = y"),
        (Region(0, 0, max_lines=2), "    return y\n", "y = x\n    z = y\n"),
    ],
)
def test_a_fill_ends_with_the_last_line_that_its_region_allows(
    tokenizer: Tokenizer, region: Region, after: str, kept: str
) -> None:
    rule = StopRule.between("def f(x):\n    ", after, None, LineLimit.of(region, after.encode()))
    assert ends(holding("y = x\n    z = y\n    a = 1", tokenizer, rule), tokenizer) == [kept]


def test_a_fill_may_end_within_the_token_that_comes(tokenizer: Tokenizer) -> None:
    fill = holding("Hello", tokenizer, StopRule.between('print("', '")\n'))
    assert ends(fill, tokenizer) == []
    assert ends(fill, tokenizer, '!")\n') == ends(fill, tokenizer, '!")', ended=True) == ["Hello!"]
    assert ends(fill, tokenizer, '!"') == ends(fill, tokenizer, ended=True) == []


def test_the_first_places_where_a_fill_may_end_and_the_last_are_named(tokenizer: Tokenizer) -> None:
    rule = StopRule.between("def f(x):\n    ", "z\n", None, LineLimit(5, keeps_newline=True))
    assert ends(holding("z\n" * 6 + "a", tokenizer, rule), tokenizer) == ["", "z\n", "z\n" * 5]


def test_no_repeat_ends_a_fill_before_its_least_length(tokenizer: Tokenizer) -> None:
    assert ends(holding("    y = x\n    return y\n", tokenizer, BLOCK, least=40), tokenizer) == []


def test_only_a_fill_that_has_run_into_its_budget_ends_with_a_whole_statement(tokenizer: Tokenizer) -> None:
    fill = holding("    y = 1\n    z = (1,\n    2", tokenizer, BLOCK)
    for most, status, whole in (
        (0, FillStatus.OUT_OF_BUDGET, True),
        (1, FillStatus.ENDED_BY_CONSTRAINT, True),
        (2, FillStatus.ENDED_BY_CONSTRAINT, False),
        (0, FillStatus.ENDED_BY_MODEL, False),
        (0, FillStatus.ENDED_BY_RULE, False),
        (0, FillStatus.STUCK, False),
    ):
        fill.most, fill.status = len(fill.tokens) + most, status
        expected = ["    y = 1\n", "    y = 1\n    z = (1,\n"] if whole else []
        assert [tokenizer.decode(tokens) for tokens in fill.whole(tokenizer)] == expected
