from pathlib import Path

import pytest

from lacuna_lsp.suggest.pace import (
    FORGOTTEN_S,
    KEPT,
    KINDS,
    LEAST_ODDS,
    MOST_ODDS,
    MOST_WAIT_MS,
    PART,
    REFUSED,
    TAKEN,
    Calmness,
    Debounce,
)


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


def test_answers_move_the_wait_within_bounds_and_it_goes_back_in_ten_minutes() -> None:
    now = 0.0
    calm = Calmness(None, lambda: now)
    assert (calm.wait_ms(0), calm.wait_ms(100)) == (0, 100)
    calm.answered("python in line", REFUSED)
    assert calm.wait_ms(100) == pytest.approx(150)
    assert calm.wait_ms(0) == pytest.approx(75)
    now = FORGOTTEN_S / 2
    assert 100 < calm.wait_ms(100) < 150
    now = FORGOTTEN_S
    assert calm.wait_ms(100) == 100
    for answer, count in ((REFUSED, 30), (TAKEN, 10), (REFUSED, 6)):
        for _ in range(count):
            calm.answered("python in line", answer)
        assert (calm.wait_ms(100) > 100) == (answer == REFUSED)
        assert calm.wait_ms(100) <= MOST_WAIT_MS


def test_a_suggestion_that_is_taken_part_by_part_counts_once_by_its_best_answer() -> None:
    by_parts, at_once = Calmness(None, lambda: 0.0), Calmness(None, lambda: 0.0)
    by_parts.answered("python in line", PART)
    for answer in (PART, TAKEN, REFUSED):
        by_parts.answered("python in line", answer, again=True)
    at_once.answered("python in line", TAKEN)
    assert by_parts.odds("python in line") == at_once.odds("python in line")
    assert by_parts.wait_ms(100) == at_once.wait_ms(100) == pytest.approx(80)


def test_answers_move_the_odds_of_their_language_and_place_within_bounds() -> None:
    calm = Calmness(None)
    calm.answered("go in line", REFUSED)
    assert LEAST_ODDS < calm.odds("go in line") < 1
    for _ in range(KEPT):
        calm.answered("go in line", REFUSED)
        calm.answered("go line start", TAKEN)
    assert calm.odds("go in line") == LEAST_ODDS
    assert calm.odds("go line start") == MOST_ODDS
    assert calm.odds("rust in line") == pytest.approx(1)


def test_answers_are_kept_privately_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "state" / "answers.json"
    calm = Calmness(file)
    for number in range(KINDS + 5):
        for _ in range(KEPT + 5):
            calm.answered(f"language{number}", TAKEN)
    calm.save()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size < KINDS * KEPT * 10
    again, last = Calmness(file), f"language{KINDS + 4}"
    assert again.odds(last) == calm.odds(last) > 1
    assert again.odds("language0") == pytest.approx(1)
