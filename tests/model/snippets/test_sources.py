from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.snippets.sources import chunk_rows


@given(st.text(alphabet="ab \n\t", max_size=400))
def test_chunks_are_disjoint_and_have_every_row_with_text(text: str) -> None:
    lines = text.split("\n")
    rows = [row for first, last in chunk_rows(lines) for row in range(first, last)]
    assert rows == sorted(set(rows))
    assert {row for row, line in enumerate(lines) if line.strip()} <= set(rows)
    assert all(0 < last - first <= 24 for first, last in chunk_rows(lines))
