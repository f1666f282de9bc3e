"""Held-out edits of a corpus as cases: what the package did next is wholly right; where it did nothing, nothing is."""

from pathlib import Path

import pytest
from tests.benchmarks.edits.dataset import load_edit_cases
from tests.benchmarks.edits.judging import judge
from tests.training.rows.test_samples import STANDING, example

from training.edits import FOLDER
from training.packages import CorpusError
from training.stored import DocumentWriter


def test_the_held_out_edits_of_a_corpus_are_cases(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no held_out edits"):
        load_edit_cases(tmp_path)
    followed, left = example(), example(STANDING)
    with DocumentWriter(tmp_path / FOLDER / "held_out" / "pypi-p.jsonl.zst") as writer:
        for one in (followed, left):
            writer.write(one)
    cases = load_edit_cases(tmp_path, 2)
    for case in cases:
        assert case.kind == "near"
        assert case.before == followed.prefix + followed.old + STANDING + followed.suffix
        assert "".join(case.after_first) == followed.prefix + followed.new + STANDING + followed.suffix
    some, nothing = sorted(cases, key=lambda case: not case.expected)
    done = followed.prefix + followed.new + followed.updated + followed.suffix
    assert judge(some, done.splitlines(keepends=True)).whole
    assert judge(some, some.after_first).found == 0
    assert nothing.expected == []
    assert judge(nothing, nothing.after_first).whole
