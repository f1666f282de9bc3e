"""A draft is the text that follows, in the project, the longest match of the text before a slot."""

from tests.model import tiny
from tests.model.fim import tiny_fim

from lacuna_model.fim.drafting.costs import PassCosts
from lacuna_model.fim.drafting.drafts import Drafts
from lacuna_model.fim.drafting.holding import Holding
from lacuna_model.prior.index import Documents, Segment
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
    return [Segment(Documents.index(documents, token_type(MODEL.tokenizer.vocab_size)))]


def drafted(segments: list[Segment], head: str = HEAD, written: str = "", most: int = 7) -> str:
    """The draft after ``written`` in a gap whose prefix is ``head``."""
    layout = tiny_fim.laid_out(MODEL, head, "")
    front = ENCODE(layout.gaps[0].prefix.decode() + written)
    drafts = Drafts(layout, segments, None, PassCosts(), Holding(), MODEL.tokenizer.special_ids)
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
    drafts = Drafts(layout, known("x y z"), None, PassCosts(), Holding(), MODEL.tokenizer.special_ids)
    fill = ENCODE("    def add(self, value):\n        self.total = value\n")
    front = fill[:6]
    assert drafts.draft((0, 1), front, 7, None, 1) == []
    drafts.filled([fill])
    assert [guess.token for guess in drafts.draft((0, 1), front, 7, None, 1)] == fill[6:13]
    drafts.filled([[]])
    assert drafts.draft((0, 1), front, 7, None, 1) == []
