from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.text.characters import well_formed


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
