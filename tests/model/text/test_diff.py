import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.text.diff import (
    REJOINED,
    blocks,
    common_ends,
    hunks,
    num_common,
    num_common_end,
    pairs,
    rejoined,
    unified,
)

ITEMS = st.lists(st.sampled_from("abc"), max_size=12)


@given(ITEMS, ITEMS)
def test_blocks_are_both_sequences_in_order(old: list[str], new: list[str]) -> None:
    found = blocks(old, new)
    assert [one for _, hunk in found for one in old[hunk.start : hunk.end]] == old
    assert [one for _, hunk in found for one in new[hunk.new_start : hunk.new_end]] == new
    for kind, hunk in found:
        assert (kind == "equal") == (old[hunk.start : hunk.end] == new[hunk.new_start : hunk.new_end])
    assert hunks(old, new) == [hunk for kind, hunk in found if kind != "equal"]
    assert all(old[one] == new[other] for one, other in pairs(old, new))
    assert len(pairs(old, new)) == sum(hunk.end - hunk.start for kind, hunk in found if kind == "equal")


@pytest.mark.parametrize("kind", ["str", "bytes", "list"])
def test_what_two_texts_have_in_common_at_their_ends_is_counted(kind: str) -> None:
    drawn = random.Random(1)
    for _ in range(200):
        one, other = ("".join(drawn.choices("ab", k=drawn.randrange(12))) for _ in range(2))
        texts = {"str": (one, other), "bytes": (one.encode(), other.encode()), "list": ([*one], [*other])}[kind]
        same = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
        assert num_common(*texts) == same
        assert num_common_end(*texts) == num_common(texts[0][::-1], texts[1][::-1])
        lead, tail = common_ends(*texts)
        assert lead == same
        assert lead + tail <= min(map(len, texts))
        assert not tail or texts[0][-tail:] == texts[1][-tail:]


def test_a_unified_diff_has_lines_of_context() -> None:
    old = "".join(f"{number}\n" for number in range(9))
    found = unified(old, old.replace("4", "four"), "a.txt", context=1).split("\n")
    assert found == ["--- a.txt", "+++ a.txt", "@@ -4,3 +4,3 @@", " 3", "-4", "+four", " 5"]
    assert unified(old, old.replace("4", "four"), "a", "b").split("\n")[:2] == ["--- a", "+++ b"]
    assert unified(old, old, "a.txt") == ""


def test_texts_are_the_same_again_behind_a_difference() -> None:
    old = [*range(30)]
    for new, start in (([*range(5), 90, 91, *range(7, 30)], 7), ([*range(5), *range(9, 30)], 9), ([80, *old], 0)):
        place = new.index(start)
        counts = [count for count in range(len(new) + 1) if rejoined(old, new[:count]) is not None]
        assert counts[0] == place + REJOINED
        assert rejoined(old, new[: counts[0]]) == start + REJOINED
    assert rejoined(old, old) is None
    assert rejoined(old, [*range(5), *range(90, 110)]) is None
