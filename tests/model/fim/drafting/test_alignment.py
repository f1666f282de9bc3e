"""The old text goes on where the new one has arrived: unchanged stretches are drafted whole again after a change."""

from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.fim.drafting.alignment import Alignment

OLD = list(range(100, 140))


def drafted(written: list[int], most: int) -> list[int]:
    aligned = Alignment(OLD)
    aligned.follow(written)
    found: list[int] = []
    while len(found) < most and (proposal := aligned.proposal()) is not None:
        found.append(proposal[0])
        aligned.take(proposal[0])
    return found


def test_the_old_text_is_drafted_from_its_start_to_its_end() -> None:
    assert drafted([], 100) == OLD


def test_after_a_replaced_token_the_draft_goes_on_behind_it() -> None:
    assert drafted([*OLD[:10], 7, *OLD[11:13]], 100) == OLD[13:]


def test_after_inserted_tokens_the_draft_goes_on_where_it_was() -> None:
    assert drafted([*OLD[:10], 1, 2, 3, 4, 5, 6, *OLD[10:13]], 5) == OLD[13:18]


def test_after_deleted_tokens_the_draft_goes_on_behind_them() -> None:
    assert drafted([*OLD[:10], *OLD[25:28]], 100) == OLD[28:]


def test_of_equal_passages_the_one_in_place_counts() -> None:
    old = [1, 2, 3, 4, 9, 1, 2, 3, 4, 8]
    aligned = Alignment(old)
    aligned.follow(old[:4])
    assert aligned.proposal() is not None
    assert aligned.place == 4
    aligned.follow(old[:9])
    assert aligned.place == 9


def test_at_the_end_of_the_old_text_nothing_is_proposed() -> None:
    aligned = Alignment(OLD)
    aligned.follow(OLD)
    assert aligned.proposal() is None


def test_the_longer_both_texts_agree_the_likelier_is_the_draft() -> None:
    def probability(written: list[int]) -> float:
        aligned = Alignment(OLD)
        aligned.follow(written)
        proposal = aligned.proposal()
        assert proposal is not None
        return proposal[1]

    after_change = [*OLD[:10], 7]
    assert probability(after_change) < probability([*after_change, OLD[11]]) < probability(OLD[:20]) < 1


def test_a_replacement_is_expected_again() -> None:
    old = [1, 2, 50, 3, 4, 5, 50, 6, 50, 7]
    aligned = Alignment(old)
    aligned.follow([1, 2, 99, 3])
    rest: list[int] = []
    while (proposal := aligned.proposal()) is not None:
        rest.append(proposal[0])
        aligned.take(proposal[0])
    assert rest == [4, 5, 99, 6, 99, 7]


def test_a_replacement_that_does_not_repeat_is_forgotten() -> None:
    old = [1, 2, 50, 3, 4, 5, 50, 6, 50, 7]
    aligned = Alignment(old)
    aligned.follow([1, 2, 99, 3, 4, 5, 50])
    aligned.take(6)
    assert aligned.proposal() is not None
    assert aligned.proposal()[0] == 50  # type: ignore[index]


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30), st.integers(0, 30))
def test_following_in_steps_is_following_at_once(old: list[int], written: list[int], cut: int) -> None:
    at_once, in_steps = Alignment(old), Alignment(old)
    at_once.follow(written)
    in_steps.follow([9, *written[:2]])  # another text, which is taken back
    in_steps.follow(written[:cut])
    copied = in_steps.copy()
    in_steps.follow([*written[:cut], 5])
    copied.follow(written)
    assert copied.proposal() == at_once.proposal()
    assert 0 <= copied.place <= len(old)
