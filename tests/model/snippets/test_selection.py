from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.core.params import Snippet
from lacuna_model.snippets.selection import RecentChunks, Selection, select


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


TEXT = "".join(f"value_{i} = {i}\n" for i in range(100))


def chunks(ring: RecentChunks, path: str = "", query: str = "", known: str = "") -> list[tuple[str, str, float]]:
    names = known.split() or [f"{i}.py" for i in range(50)]
    return [(one.path, one.text, one.score) for one in ring.candidates(path, set(query.split()), names)]


def test_the_rows_around_edits_are_kept_and_the_newest_come_first() -> None:
    ring = RecentChunks()
    ring.note("1.py", TEXT, TEXT.index("value_50"), "edited")
    ring.note("2.py", TEXT.replace("\n", "\r\n"), 0, "edited")
    (newer, older) = chunks(ring)
    assert (newer[0], older[0]) == ("2.py", "1.py")
    assert older[1] == "".join(f"value_{i} = {i}\n" for i in range(38, 62))
    assert newer[1] == "".join(f"value_{i} = {i}\n" for i in range(12))
    assert newer[2] > older[2]


def test_rows_with_a_credential_and_empty_ones_are_not_kept() -> None:
    ring = RecentChunks()
    ring.note("1.py", f'password = "{"a1B2c3D4e5F6g7H8"}"\n', 0, "edited")
    ring.note("1.py", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", 0, "edited")
    ring.note("1.py", "\n\n", 0, "edited")
    assert chunks(ring) == []
