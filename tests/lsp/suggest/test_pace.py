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


class Clock:
    """Seconds that only pass when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_refusal_makes_the_wait_longer_and_it_goes_back_in_ten_minutes(clock: Clock) -> None:
    calm = Calmness(None, clock)
    assert calm.wait_ms(100) == 100
    assert calm.wait_ms(0) == 0
    calm.answered("python", "in line", REFUSED)
    assert calm.wait_ms(100) == pytest.approx(150)
    assert calm.wait_ms(0) == pytest.approx(75)
    clock.now = FORGOTTEN_S / 2
    assert 100 < calm.wait_ms(100) < 150
    clock.now = FORGOTTEN_S
    assert calm.wait_ms(100) == 100


def test_taken_suggestions_make_the_wait_shorter(clock: Clock) -> None:
    calm = Calmness(None, clock)
    calm.answered("python", "in line", TAKEN)
    assert calm.wait_ms(100) == pytest.approx(80)


def test_a_suggestion_that_is_taken_part_by_part_counts_once_by_its_best_answer(clock: Clock) -> None:
    by_parts, at_once = Calmness(None, clock), Calmness(None, clock)
    by_parts.answered("python", "in line", PART)
    for answer in (PART, TAKEN, REFUSED):
        by_parts.answered("python", "in line", answer, again=True)
    at_once.answered("python", "in line", TAKEN)
    assert by_parts.odds("python", "in line") == at_once.odds("python", "in line")
    assert by_parts.wait_ms(100) == at_once.wait_ms(100)


def test_whoever_refused_many_waits_no_longer_than_between_two_keys_and_gets_the_usual_wait_back_soon(
    clock: Clock,
) -> None:
    calm = Calmness(None, clock)
    for _ in range(30):
        calm.answered("python", "in line", REFUSED)
    assert calm.wait_ms(0) == calm.wait_ms(100) == MOST_WAIT_MS == 400
    for _ in range(10):
        calm.answered("python", "in line", TAKEN)
    assert calm.wait_ms(100) < 100
    for _ in range(30):
        calm.answered("python", "in line", TAKEN)
    for _ in range(6):
        calm.answered("python", "in line", REFUSED)
    assert calm.wait_ms(100) > 100


def test_answers_move_the_odds_of_their_language_and_place_within_bounds(clock: Clock) -> None:
    calm = Calmness(None, clock)
    assert calm.odds("go", "in line") == pytest.approx(1)
    calm.answered("go", "in line", REFUSED)
    once = calm.odds("go", "in line")
    assert LEAST_ODDS < once < 1
    for _ in range(20):
        calm.answered("go", "in line", REFUSED)
        calm.answered("go", "line start", TAKEN)
    assert calm.odds("go", "in line") == LEAST_ODDS
    assert calm.odds("go", "line start") == MOST_ODDS
    assert calm.odds("rust", "in line") == pytest.approx(1)


def test_answers_are_kept_privately_and_bounded(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "state" / "answers.json"
    calm = Calmness(file, clock)
    for number in range(KINDS + 5):
        for _ in range(KEPT + 5):
            calm.answered(f"language{number}", "in line", TAKEN)
    calm.save()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size < KINDS * KEPT * 10
    again = Calmness(file, clock)
    last = f"language{KINDS + 4}"
    assert again.odds(last, "in line") == calm.odds(last, "in line") > 1
    assert again.odds("language0", "in line") == pytest.approx(1)
