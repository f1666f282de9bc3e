from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.text.characters import in_word, well_formed, within_character


@given(value=st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_what_is_well_formed_stays(value: object) -> None:
    assert well_formed(value) == value


@given(text=st.text(st.sampled_from("aé😀\ud83d\ude00\udce9")))
def test_every_text_becomes_one_that_can_be_encoded(text: str) -> None:
    good = well_formed(text)
    good.encode()
    assert well_formed({text: (text, [text])}) == {good: (good, [good])}


def test_halves_that_belong_together_are_joined_and_others_replaced() -> None:
    assert well_formed("a\ud83d\ude00b\ud83dc\udce9") == "a😀b\ufffdc\ufffd"


def test_offsets_within_characters_are_told_from_those_between() -> None:
    data = "aé😀".encode()
    assert [place for place in range(len(data) + 1) if within_character(data, place)] == [2, 4, 5, 6]


def test_characters_of_words_are_letters_digits_and_the_underscore() -> None:
    assert [one for one in ("a", "é", "1", "_", "-", " ", "") if in_word(one)] == ["a", "é", "1", "_"]
