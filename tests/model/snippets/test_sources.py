from hypothesis import given
from hypothesis import strategies as st

from lacuna_model.snippets.sources import Sources, chunk_rows

TEXTS = st.sampled_from(
    [
        "",
        "def f(): pass\n",
        "def f(): pass\ndef g(): pass\n",
        "class A:\n    def f(self): pass\n",
        "x = 1\r\n",
        "def (:\n",
        "ü",
    ]
)
PATHS = st.sampled_from(["a.py", "b.py", "pkg/__init__.py", "pkg/a.py", "c.js", "d.txt"])


@given(st.lists(st.tuples(PATHS, st.none() | TEXTS), max_size=20))
def test_after_any_changes_the_sources_equal_those_read_from_scratch(changes: list[tuple[str, str | None]]) -> None:
    changed, last = Sources(), dict(changes)
    for path, text in changes:
        if text is None:
            changed.drop(path)
        else:
            changed.put(path, text)
    fresh = Sources()
    for path, text in last.items():
        if text is not None:
            fresh.put(path, text)
    assert changed == fresh


@given(st.text(alphabet="ab \n\t", max_size=400))
def test_chunks_are_disjoint_and_have_every_row_with_text(text: str) -> None:
    lines = text.split("\n")
    rows = [row for first, last in chunk_rows(lines) for row in range(first, last)]
    assert rows == sorted(set(rows))
    assert {row for row, line in enumerate(lines) if line.strip()} <= set(rows)
    assert all(0 < last - first <= 24 for first, last in chunk_rows(lines))
