import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.snippets.format import words
from lacuna_model.snippets.index import SimilarCode, WorkspaceIndex
from lacuna_model.snippets.sources import Chunk

NAMES = st.sampled_from(["a.py", "b.py", "pkg/a.py", ".env", "ignored.py"])
TEXTS = st.sampled_from(["def f(): pass\n", "class A:\n    x = 1\n", "-----BEGIN RSA PRIVATE KEY-----\n", "x = 1\r\n"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, TEXTS),
        st.tuples(st.just("delete"), NAMES, st.just("")),
        st.tuples(st.just("refresh"), NAMES, st.just("")),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_after_any_steps_the_index_equals_one_built_from_scratch(steps: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "pkg").mkdir()
        (root / ".gitignore").write_text("ignored.py\n")
        index = WorkspaceIndex(root)
        for number, (step, name, text) in enumerate(steps):
            if step == "write":
                (root / name).write_bytes(text.encode())
                os.utime(root / name, ns=(number, number))  # clocks may be too coarse to tell two writes apart
            elif step == "delete":
                (root / name).unlink(missing_ok=True)
            else:
                list(index.refresh())
        list(index.refresh())
        fresh = WorkspaceIndex(root)
        list(fresh.refresh())
        assert index.sources == fresh.sources
        query = ["pass", "x", "f"]
        assert index.similar.nearest(query, 9) == fresh.similar.nearest(query, 9)
        assert not {".env", "ignored.py"} & set(index.sources.files)
        assert not any("PRIVATE" in line for source in index.sources.files.values() for line in source.lines)


def test_a_workspace_that_is_never_read_in_time_is_read_in_parts(tmp_path: Path) -> None:
    for number in range(70):
        (tmp_path / f"m{number:02}.py").write_text("x = 1\n")
    index, known = WorkspaceIndex(tmp_path), list[int]()
    for most in (40, 0, 100, 1000):  # files that are walked in time, of which some are read then
        left = iter([False] * most)
        list(index.refresh(lambda left=left: next(left, True)))
        known.append(len(index.sources.files))
        assert index.is_read is (known[-1] == 70)
    assert known == [32, 40, 70, 70]


def similar_code(*texts: str) -> SimilarCode:
    return SimilarCode([Chunk(f"{i}.py", [text], 0, 1, words(text)) for i, text in enumerate(texts)])


def test_the_chunk_with_the_rarest_shared_words_is_nearest() -> None:
    similar = similar_code("self return value", "open_account(self, owner) return", "self return other")
    best, *others = similar.nearest(words("return open_account(owner)"), 3)
    assert best[0].path == "1.py"
    assert best[1] > 0.8
    assert all(score < 0.2 for _, score in others)
