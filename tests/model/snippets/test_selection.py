from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.params import Snippet
from lacuna_model.snippets.selection import Selection, select


def snippet(name: str, score: float, size: int = 3) -> Snippet:
    return Snippet(f"{name}.py", "".join(f"{name}_{i} = {i}\n" for i in range(size)), score=score)


def count(one: Snippet) -> int:
    return len(one.text.split())


def chosen(
    candidates: Sequence[Snippet], old: Selection | None = None, row: int = 0, text: str = "", budget: int = 100
) -> Selection:
    return select(old or Selection(), candidates, row, text, count, budget)


CANDIDATES = st.lists(
    st.builds(snippet, st.sampled_from("abcdefghijkl"), st.floats(0, 1), st.integers(1, 6)),
    max_size=12,
    unique_by=lambda one: one.path,
)


@given(CANDIDATES, st.integers(0, 60), st.integers(0, 9))
def test_candidates_give_the_same_selection_in_any_order(candidates: list[Snippet], budget: int, row: int) -> None:
    old = chosen(candidates, budget=budget)
    assert chosen(candidates[::-1], budget=budget) == old
    assert chosen(candidates, old, row, budget=budget).snippets == old.snippets


def test_new_snippets_are_appended_and_within_a_line_only_for_a_larger_gain() -> None:
    a, b, c, d = snippet("a", 0.5), snippet("b", 0.4), snippet("c", 0.45), snippet("d", 0.6)
    old = chosen([a, b])
    assert [one.path for one in old.snippets] == ["b.py", "a.py"]
    assert chosen([a, b, c], old, row=0).snippets == old.snippets
    assert [one.path for one in chosen([a, b, c], old, row=1).snippets] == ["b.py", "a.py", "c.py"]
    assert [one.path for one in chosen([a, b, d], old, row=0).snippets] == ["b.py", "a.py", "d.py"]
    assert chosen([a, b, d], old, row=0, budget=20).snippets == old.snippets
