import gzip
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.edits.dataset import EditCase, LineEdit, load_edit_cases
from tests.benchmarks.edits.judging import Answered, Verdict, judge, rows

from lacuna_model.core.errors import RequestError

CASE = EditCase(
    "owner/name@1:a.py",
    "repeat",
    "python",
    "a.py",
    "a = old\nb\nc = old\nd\ne = old\nf\n",
    [LineEdit(0, 1, ["a = new", "more"]), LineEdit(2, 3, ["c = new"]), LineEdit(4, 5, ["e = other"])],
    0,
    [1],
)


@pytest.mark.parametrize(
    ("offered", "verdict"),
    [
        ("a = new\nmore\nb\nc = old\nd\ne = old\nf\n", Verdict(1, 0, 0, 0, 0)),
        ("a = new\nmore\nb\nc = new\nd\ne = old\nf\n", Verdict(1, 1, 1, 0, 0, 3, 3)),
        ("a = new\nmore\nb\nc = new\nd\ne = other\nf\n", Verdict(1, 1, 2, 1, 0, 8, 8)),
        ("a = new\nmore\nb\nc = new\nd\ne = new\nf\n", Verdict(1, 1, 2, 0, 1, 6, 3)),
        ("a = new\nmore\nb\nc = now\nd\ne = old\nf\n", Verdict(1, 0, 1, 0, 1, 3, 0)),
        ("a = new\nmore\nb\nc = newer, new\nd\ne = old\nf\n", Verdict(1, 0, 1, 0, 1, 9, 3)),
        ("a = old\nmore\nb\nc = old\nd\ne = old\nf\n", Verdict(1, 0, 1, 0, 1, 3, 0, 1)),
        ("a = new\nb\nc = old\nd\ne = old\nf\n", Verdict(1, 0, 1, 0, 1, 0, 0, 1)),
    ],
)
def test_a_place_counts_only_with_the_text_of_the_commit(offered: str, verdict: Verdict) -> None:
    """What is written is held against the commit, and against the first change."""
    assert judge(CASE, offered.splitlines(keepends=True)) == verdict


def test_the_figures_are_summed_by_kind_and_language() -> None:
    right, wrong = Verdict(1, 1, 1, 0, 0, 10, 10), Verdict(2, 0, 1, 0, 1, 10, 5, 1)
    silent, loud = Verdict(0, 0, 0, 0, 0), Verdict(0, 0, 1, 0, 1)
    answered = [
        Answered("one", "1", "repeat", "go", right, 10.0),
        Answered("one", "2", "repeat", "python", wrong, 30.0),
        Answered("one", "3", "near", "go", right, 10.0),
        Answered("one", "4", "near", "go", silent, 10.0),
        Answered("one", "5", "near", "go", loud, 10.0),
    ]
    found = {(row["kind"], row["language"]): row for row in rows(answered)}
    assert set(found) == {("repeat", "all"), ("repeat", "go"), ("repeat", "python"), ("near", "go")}
    both = found["repeat", "all"]
    assert [both[name] for name in ("expected", "found", "offered", "wrong", "whole")] == [3, 1, 2, 1, 1]
    assert [both[name] for name in ("recall", "precision", "kept", "reversed")] == [1 / 3, 0.5, 0.75, 0.5]
    assert (found["near", "go"]["nothing"], found["near", "go"]["silent"]) == (2, 1)


def test_cases_are_read_and_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress(msgspec.json.encode(CASE) + b"\n"))
    assert load_edit_cases(file) == load_edit_cases(file, kind=CASE.kind) == [CASE]
    assert load_edit_cases(file, kind="other") == []
    file.write_bytes(b"no cases")
    with pytest.raises(RequestError, match="has no edits of commits"):
        load_edit_cases(file)
