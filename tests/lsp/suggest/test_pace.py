import pytest

from lacuna_lsp.suggest.pace import Debounce


def typed(*times: float) -> Debounce:
    debounce = Debounce()
    debounce.answered(0)
    for time in times:
        debounce.typed(time)
    return debounce


def test_the_delay_follows_the_rhythm_of_typing() -> None:
    slow, quick = typed(*range(0, 9000, 300)), typed(*range(0, 3600, 120))
    assert slow.delay() == pytest.approx(150)
    assert quick.delay() == pytest.approx(60)


def test_the_first_line_is_due_after_two_keys_of_the_rhythm_but_not_too_soon_or_late() -> None:
    usual, quick, slow = typed(*range(0, 7500, 250)), typed(*range(0, 3600, 120)), typed(*range(0, 9999, 390))
    assert (quick.due(), usual.due(), slow.due()) == (400, 500, 700)


def test_the_time_that_an_answer_takes_is_subtracted_from_the_delay() -> None:
    debounce = Debounce()
    assert debounce.delay() == 0
    debounce.answered(20)
    debounce.answered(60)
    assert debounce.delay() == pytest.approx(60)
    debounce.answered(5000)
    assert debounce.delay() == 0
