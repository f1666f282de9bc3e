import gzip
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
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
    found = judge(CASE, offered.splitlines(keepends=True))
    assert replace(found, written=0, kept=0, reversed=0) == verdict


@pytest.mark.parametrize(
    ("offered", "figures"),
    [
        ("a = new\nmore\nb\nc = old\nd\ne = old\nf\n", (0, 0, 0)),
        ("a = new\nmore\nb\nc = new\nd\ne = old\nf\n", (3, 3, 0)),
        ("a = new\nmore\nb\nc = newer, new\nd\ne = old\nf\n", (9, 3, 0)),
        ("a = old\nmore\nb\nc = old\nd\ne = old\nf\n", (3, 0, 1)),
        ("a = new\nb\nc = old\nd\ne = old\nf\n", (0, 0, 1)),
    ],
)
def test_what_is_written_is_held_against_the_commit_and_the_first_change(
    offered: str, figures: tuple[int, int, int]
) -> None:
    found = judge(CASE, offered.splitlines(keepends=True))
    assert (found.written, found.kept, found.reversed) == figures


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
    rows = {(row.kind, row.language): row for row in summarise(answered)}
    assert set(rows) == {("repeat", "all"), ("repeat", "go"), ("repeat", "python"), ("near", "go")}
    both = rows["repeat", "all"]
    assert (both.expected, both.found, both.offered, both.wrong, both.whole) == (3, 1, 2, 1, 1)
    assert (both.recall, both.precision, both.ms_p50) == (0.333, 0.5, 20.0)
    assert (both.kept, both.reversed) == (0.75, 0.5)
    assert (rows["near", "go"].nothing, rows["near", "go"].silent) == (2, 1)


def test_cases_are_read_and_another_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl.gz"
    file.write_bytes(gzip.compress(msgspec.json.encode(CASE) + b"\n"))
    assert load_edit_cases(file) == load_edit_cases(file, kind=CASE.kind) == [CASE]
    assert load_edit_cases(file, kind="other") == []
    file.write_bytes(b"no cases")
    with pytest.raises(RequestError, match="has no edits of commits"):
        load_edit_cases(file)
