import gzip
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.edits.dataset import EditCase, LineEdit, load_edit_cases
from tests.benchmarks.edits.judging import Verdict, judge
from tests.benchmarks.edits.scores import Answered, summarise

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
        ("a = new\nmore\nb\nc = new\nd\ne = old\nf\n", Verdict(1, 1, 1, 0, 0)),
        ("a = new\nmore\nb\nc = new\nd\ne = other\nf\n", Verdict(1, 1, 2, 1, 0)),
        ("a = new\nmore\nb\nc = new\nd\ne = new\nf\n", Verdict(1, 1, 2, 0, 1)),
        ("a = new\nmore\nb\nc = now\nd\ne = old\nf\n", Verdict(1, 0, 1, 0, 1)),
    ],
)
def test_a_place_counts_only_with_the_text_of_the_commit(offered: str, verdict: Verdict) -> None:
    assert judge(CASE, offered.splitlines(keepends=True)) == verdict


def test_the_figures_are_summed_by_kind_and_language() -> None:
    right, wrong = Verdict(1, 1, 1, 0, 0), Verdict(2, 0, 1, 0, 1)
    answered = [
        Answered("one", "1", "repeat", "go", right, 10.0),
        Answered("one", "2", "repeat", "python", wrong, 30.0),
        Answered("one", "3", "near", "go", right, 10.0),
    ]
    rows = {(row.kind, row.language): row for row in summarise(answered)}
    assert set(rows) == {("repeat", "all"), ("repeat", "go"), ("repeat", "python"), ("near", "go")}
    both = rows["repeat", "all"]
    assert (both.expected, both.found, both.offered, both.wrong, both.whole) == (3, 1, 2, 1, 1)
    assert (both.recall, both.precision, both.ms_p50) == (0.333, 0.5, 20.0)


def test_cases_are_read_and_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress(msgspec.json.encode(CASE) + b"\n"))
    assert load_edit_cases(file) == load_edit_cases(file, kind=CASE.kind) == [CASE]
    assert load_edit_cases(file, kind="other") == []
    file.write_bytes(b"no cases")
    with pytest.raises(RequestError, match="has no edits of commits"):
        load_edit_cases(file)
