"""A draft is the text that follows, in the project, the longest match of the text before a slot."""

from collections.abc import Sequence
from copy import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.fim.costs import AcceptanceRates, DraftedToken, PassCosts
from lacuna_model.fim.drafts import Drafts, OldTextDrafts, WrittenFill
from lacuna_model.prior.index import IndexedDocuments, Segment, token_type

MODEL = tiny_fim.loaded()
ENCODE = MODEL.tokenizer.encode
KNOWN = (
    "class Account:\n    def add(self, value):\n"
    "        self.total = self.total + value\n        print(self.name, self.total)\n"
)
HEAD = "class Other:\n    def add(self, value):\n        self.total ="
OLD = list(range(100, 140))


def known(*texts: str) -> list[Segment]:
    documents = {str(number): ENCODE(text) for number, text in enumerate(texts)}
    return [Segment(IndexedDocuments.index(documents, token_type(MODEL.tokenizer.vocab_size)))]


def drafted(segments: list[Segment], head: str = HEAD, written: str = "", most: int = 7) -> str:
    """The draft after ``written`` in a gap whose prefix is ``head``."""
    layout = tiny_fim.laid_out(MODEL, head, "")
    front = ENCODE(layout.gaps[0].prefix.decode() + written)
    drafts = Drafts(layout, segments, PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)
    return MODEL.tokenizer.decode([guess.token for guess in drafts.draft(0, WrittenFill(front, most), 1)])


def test_the_text_after_a_match_in_the_project_is_drafted() -> None:
    draft = drafted(known(tiny.CODE, KNOWN), written=" self.total")
    assert draft
    assert " + value\n        print(self.name, self.total)".startswith(draft)


def test_the_fill_of_an_earlier_gap_is_drafted_like_the_project() -> None:
    layout = tiny_fim.laid_out(MODEL, "import math\n", "class Other:\n", "")
    drafts = Drafts(layout, known("x y z"), PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)
    fill = ENCODE("    def add(self, value):\n        self.total = value\n")
    front = fill[:6]
    assert drafts.draft(1, WrittenFill(front, 7), 1) == []
    drafts.filled([fill])
    assert [guess.token for guess in drafts.draft(1, WrittenFill(front, 7), 1)] == fill[6:13]
    drafts.filled([[]])
    assert drafts.draft(1, WrittenFill(front, 7), 1) == []


def test_what_was_said_behind_the_last_token_is_drafted_as_far_as_it_is_followed() -> None:
    layout = tiny_fim.laid_out(MODEL, "x = 1\n", "")
    drafts = Drafts(layout, (), PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)
    tokens = [*ENCODE("return value"), MODEL.tokenizer.eog_id, 9]
    said = [DraftedToken(token, 0.4, "masked", slot) for slot, token in enumerate(tokens)]
    found = drafts.draft(0, WrittenFill(ENCODE("y"), 7, run=said), 1)
    assert [guess.token for guess in found] == tokens[:-2]
    assert [(guess.source, guess.slot) for guess in found] == [("masked", slot) for slot in range(len(found))]
    sure = Drafts(layout, known("aaa bbb ccc ddd eee\n" * 8), PassCosts(), AcceptanceRates(), frozenset())
    other = sure.draft(0, WrittenFill(ENCODE("aaa bbb"), 4, run=said), 1)
    assert {guess.source for guess in other} == {"project"}


def masked(run: Sequence[int], probability: float) -> list[DraftedToken]:
    """What a smaller model has drafted."""
    return [DraftedToken(token, probability, "masked", slot) for slot, token in enumerate(run)]


def beside(run: Sequence[DraftedToken], segments: Sequence[Segment], written: Sequence[int]) -> list[DraftedToken]:
    """What is drafted beside a smaller model."""
    layout = tiny_fim.laid_out(MODEL, "", "")
    drafts = Drafts(layout, segments, PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)
    return drafts.draft(0, WrittenFill(written, 3, run=run), 1)


def test_the_likelier_of_the_project_and_a_smaller_model_is_drafted() -> None:
    copied = ENCODE("total = total + value\n" * 3)
    segments = [Segment(IndexedDocuments.index({"a": copied}, token_type(MODEL.tokenizer.vocab_size)))]
    unsure, sure = masked([5, 6, 7], 0.01), masked([5, 6, 7], 0.99)
    assert {guess.source for guess in beside(unsure, segments, copied[:6])} == {"project"}
    assert [guess.token for guess in beside(sure, known("x y z"), copied[:6])] == [5, 6, 7]
    assert [guess.slot for guess in beside(sure, (), copied[:6])] == [0, 1, 2]


@pytest.mark.parametrize(("probability", "sure"), [(0.95, True), (0.5, False)])
def test_a_source_that_is_sure_of_the_next_token_leaves_nothing_to_a_smaller_model(
    probability: float, sure: bool
) -> None:
    drafts = Drafts(tiny_fim.laid_out(MODEL, "", ""), (), PassCosts(), AcceptanceRates(), frozenset())
    assert drafts.is_sure(0, WrittenFill([4], 3, run=masked([9], probability))) is sure


@pytest.mark.parametrize(("second_ms", "most"), [(18.0, 0), (10.0, 6)])
def test_a_draft_ends_where_a_row_does_not_pay(second_ms: float, most: int) -> None:
    costs = PassCosts()
    for _ in range(50):
        costs.saw_pass(1, 10.0)
        costs.saw_pass(16, 10.0 + 15 * (second_ms - 10.0))
    drafts = Drafts(tiny_fim.laid_out(MODEL, "", ""), (), costs, AcceptanceRates(), frozenset())
    assert len(drafts.draft(0, WrittenFill([4], 6, run=masked([5, 6, 7, 8, 9, 10], 0.7)), 1)) == most


def test_verified_tokens_are_counted_up_to_the_first_wrong_one() -> None:
    rates = AcceptanceRates()
    drafting = Drafts(tiny_fim.laid_out(MODEL, "x", ""), (), PassCosts(), rates, frozenset())
    guesses = [DraftedToken(token, 0.9, "masked") for token in range(4)]
    drafting.verified(guesses, 2)
    drafting.verified(guesses, 4)
    assert rates.seen["masked", 0].tolist() == pytest.approx([7 * 0.9, 6, 7])


def drafted_old(written: list[int], most: int, old: list[int] = OLD) -> list[int]:
    aligned = OldTextDrafts(old)
    aligned.follow(written)
    found: list[int] = []
    while len(found) < most and (proposal := aligned.proposal()) is not None:
        found.append(proposal.token)
        aligned.take(proposal.token)
    return found


@pytest.mark.parametrize(
    ("written", "most", "drafted"),
    [
        ([], 100, OLD),
        ([*OLD[:10], 7, *OLD[11:13]], 100, OLD[13:]),  # replaced
        ([*OLD[:10], 1, 2, 3, 4, 5, 6, *OLD[10:13]], 5, OLD[13:18]),  # inserted
        ([*OLD[:10], *OLD[25:28]], 100, OLD[28:]),  # deleted
        (OLD, 100, []),
    ],
)
def test_the_old_text_is_drafted_behind_what_was_changed(written: list[int], most: int, drafted: list[int]) -> None:
    assert drafted_old(written, most) == drafted


def test_a_replacement_is_expected_again_unless_it_does_not_repeat() -> None:
    old = [1, 2, 50, 3, 4, 5, 50, 6, 50, 7]
    assert drafted_old([1, 2, 99, 3], 100, old) == [4, 5, 99, 6, 99, 7]
    assert drafted_old([1, 2, 99, 3, 4, 5, 50, 6], 1, old) == [50]


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30), st.integers(0, 30))
def test_following_in_steps_is_following_at_once(old: list[int], written: list[int], cut: int) -> None:
    at_once, in_steps = OldTextDrafts(old), OldTextDrafts(old)
    at_once.follow(written)
    in_steps.follow([9, *written[:2]])  # another text, which is taken back
    in_steps.follow(written[:cut])
    copied = copy(in_steps)
    in_steps.follow([*written[:cut], 5])
    copied.follow(written)
    assert copied.proposal() == at_once.proposal()
    assert 0 <= copied.place <= len(old)
