"""Drafts are what the project has behind the longest match of what stands in front of a slot."""

from tests.model import tiny

from lacuna_model.fim.drafts import ProjectDrafts
from lacuna_model.prior.index import Documents, Segment
from lacuna_model.prior.suffix_array import token_type

from . import tiny_fim

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
    """What is drafted behind ``written`` in a gap behind ``head``."""
    layout = tiny_fim.laid_out(MODEL, head, "")
    front = ENCODE(layout.gaps[0].prefix.decode() + written)
    return MODEL.tokenizer.decode(ProjectDrafts(segments, layout).draft(0, front, most))


def test_what_the_project_has_is_drafted_as_far_as_it_goes() -> None:
    draft = drafted(known(tiny.CODE, KNOWN), written=" self.total")
    assert draft
    assert " + value\n        print(self.name, self.total)".startswith(draft)


def test_no_more_is_drafted_than_there_is_room_for() -> None:
    segments = known(KNOWN)
    assert len(ENCODE(drafted(segments, written=" self.total", most=1))) == 1
    assert drafted(segments, written=" self.total", most=0) == ""


def test_nothing_is_drafted_where_the_project_has_nothing_alike() -> None:
    assert drafted(known(tiny.CODE, KNOWN), head="zzz qqq", written=" @@") == ""
    assert drafted([], written=" self.total") == ""


def test_a_short_match_is_not_followed() -> None:
    assert drafted(known("a b c d e f g"), head="d", written="") == ""
