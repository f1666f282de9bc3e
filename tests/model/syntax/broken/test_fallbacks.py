"""The fallbacks of a constraint: each is offered once."""

from tests.model.syntax.drive import require

from lacuna_model.syntax.broken.fallbacks import Fallbacks
from lacuna_model.syntax.lr.clock import Clock

BROKEN = b"y = \nx = = 3\n"


def test_a_part_and_the_whole_are_offered_once_each() -> None:
    fallbacks = Fallbacks(BROKEN, (4, 4), require("python"), Clock(), in_line=True)
    sound, tolerant = fallbacks.sound(), fallbacks.tolerant()
    assert sound is not None
    assert b"= =" not in sound.text
    assert tolerant is not None
    assert tolerant.text == BROKEN
    assert fallbacks.sound() is None
    assert fallbacks.tolerant() is None


def test_there_are_none_without_a_gap_or_a_language() -> None:
    for gap, language in ((None, require("python")), ((4, 4), None)):
        fallbacks = Fallbacks(BROKEN, gap, language, Clock(), in_line=True)
        assert fallbacks.sound() is None
        assert fallbacks.tolerant() is None
