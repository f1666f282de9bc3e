import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_lsp.suggest.debounce import Debounce


def typed(*times: float) -> Debounce:
    debounce = Debounce()
    for time in times:
        debounce.typed(time)
    return debounce


@pytest.mark.parametrize(
    ("head", "tail", "at_end", "delay"),
    [("x.", "", True, 300.0), ("x.", "", False, 330.0), ("xy", "", False, 480.0), ("xy", "z", False, 600.0)],
)
def test_the_delay_is_shorter_where_a_suggestion_is_likelier_to_be_wanted(
    head: str, tail: str, at_end: bool, delay: float
) -> None:
    assert Debounce().delay(head, tail, at_end=at_end) == pytest.approx(delay)


def test_the_delay_follows_the_rhythm_of_typing() -> None:
    slow, quick = typed(*range(0, 9000, 300)), typed(*range(0, 3600, 120))
    assert slow.delay("x.", "", at_end=True) == pytest.approx(450)
    assert quick.delay("x.", "", at_end=True) == pytest.approx(180)


def test_a_pause_does_not_count_for_the_rhythm() -> None:
    with_pause = typed(*range(0, 3600, 120), *range(60_000, 63_600, 120))
    assert with_pause.delay("x.", "", at_end=True) == pytest.approx(180)


def test_the_time_that_an_answer_takes_is_subtracted_from_the_delay() -> None:
    debounce = Debounce()
    debounce.answered(100)
    debounce.answered(300)
    assert debounce.delay("x.", "", at_end=True) == pytest.approx(100)
    debounce.answered(5000)
    assert debounce.delay("x.", "", at_end=True) == 0


@given(st.lists(st.floats(0, 1e5), max_size=50), st.lists(st.floats(0, 1e4), max_size=20), st.text(max_size=3))
def test_the_delay_stays_within_bounds(gaps: list[float], answers: list[float], head: str) -> None:
    debounce, now = Debounce(), 0.0
    for gap in gaps:
        debounce.typed(now := now + gap)
    for took in answers:
        debounce.answered(took)
    assert 0 <= debounce.delay(head, "", at_end=False) <= 1000
