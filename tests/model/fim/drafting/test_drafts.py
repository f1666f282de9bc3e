"""A draft is the text that follows, in the project, the longest match of the text before a slot."""

import pytest
from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.fim.drafting.acceptance_rates import AcceptanceRates, DraftedToken, Source
from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.drafting.drafts import Drafts
from lacuna_model.prior.index import IndexedDocuments, Segment
from lacuna_model.prior.suffix_array import token_type

MODEL = tiny_fim.loaded()
ENCODE = MODEL.tokenizer.encode
KNOWN = (
    "class Account:\n    def add(self, value):\n"
    "        self.total = self.total + value\n        print(self.name, self.total)\n"
)
HEAD = "class Other:\n    def add(self, value):\n        self.total ="


def known(*texts: str) -> list[Segment]:
    documents = {str(number): ENCODE(text) for number, text in enumerate(texts)}
    return [Segment(IndexedDocuments.index(documents, token_type(MODEL.tokenizer.vocab_size)))]


def drafted(segments: list[Segment], head: str = HEAD, written: str = "", most: int = 7) -> str:
    """The draft after ``written`` in a gap whose prefix is ``head``."""
    layout = tiny_fim.laid_out(MODEL, head, "")
    front = ENCODE(layout.gaps[0].prefix.decode() + written)
    drafts = Drafts(layout, segments, None, PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)
    return MODEL.tokenizer.decode([guess.token for guess in drafts.draft((0, 0), front, most, None, 1)])


def test_the_text_after_a_match_in_the_project_is_drafted() -> None:
    draft = drafted(known(tiny.CODE, KNOWN), written=" self.total")
    assert draft
    assert " + value\n        print(self.name, self.total)".startswith(draft)


def test_a_draft_has_no_more_tokens_than_the_limit() -> None:
    segments = known(KNOWN)
    assert len(ENCODE(drafted(segments, written=" self.total", most=1))) == 1
    assert drafted(segments, written=" self.total", most=0) == ""


def test_nothing_is_drafted_without_a_match_in_the_project() -> None:
    assert drafted(known(tiny.CODE, KNOWN), head="zzz qqq", written=" @@") == ""
    assert drafted([], written=" self.total") == ""


def test_a_short_match_is_not_followed() -> None:
    assert drafted(known("a b c d e f g"), head="d", written="") == ""


def test_the_fill_of_an_earlier_gap_is_drafted_like_the_project() -> None:
    layout = tiny_fim.laid_out(MODEL, "import math\n", "class Other:\n", "")
    drafts = Drafts(layout, known("x y z"), None, PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)
    fill = ENCODE("    def add(self, value):\n        self.total = value\n")
    front = fill[:6]
    assert drafts.draft((0, 1), front, 7, None, 1) == []
    drafts.filled([fill])
    assert [guess.token for guess in drafts.draft((0, 1), front, 7, None, 1)] == fill[6:13]
    drafts.filled([[]])
    assert drafts.draft((0, 1), front, 7, None, 1) == []


@pytest.mark.parametrize("source", ["refined", "masked"])
def test_what_was_said_behind_the_last_token_is_drafted_as_far_as_it_is_followed(source: Source) -> None:
    layout = tiny_fim.laid_out(MODEL, "x = 1\n", "")
    drafts = Drafts(layout, (), None, PassCosts(), AcceptanceRates(), MODEL.tokenizer.special_ids)
    tokens = [*ENCODE("return value"), MODEL.tokenizer.eog_id, 9]
    said = [DraftedToken(token, 0.4, source, slot) for slot, token in enumerate(tokens)]
    found = drafts.draft((0, 0), ENCODE("y"), 7, None, 1, (), said)
    assert [guess.token for guess in found] == tokens[:-2]
    assert [(guess.source, guess.slot) for guess in found] == [(source, slot) for slot in range(len(found))]
    sure = Drafts(layout, known("aaa bbb ccc ddd eee\n" * 8), None, PassCosts(), AcceptanceRates(), frozenset())
    other = sure.draft((0, 0), ENCODE("aaa bbb"), 4, None, 1, (), said)
    assert {guess.source for guess in other} == {"project"}


def test_sources_that_have_not_held_are_believed_less_slot_by_slot() -> None:
    rates = AcceptanceRates()
    for _ in range(30):
        rates.saw(DraftedToken(1, 0.8, "masked", 1), 1, held=True)
        rates.saw(DraftedToken(1, 0.8, "masked", 2), 2, held=False)
    assert rates.usual("masked", 1) > 0.8 > 0.3 > rates.usual("masked", 2)
    assert rates.corrected(0.8, "masked", 1) > 0.9 > 0.4 > rates.corrected(0.8, "masked", 2)
    assert rates.usual("drafter") == pytest.approx(2 / 3)
    assert rates.usual("masked", 3) == pytest.approx(5 / 6)
