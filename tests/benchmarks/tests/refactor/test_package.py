import subprocess
from pathlib import Path

import pytest
from tests.benchmarks.refactor import package as benchmark
from tests.benchmarks.refactor.package import GIT, find, first, run, write
from tests.server.refactor.bench import Scripted

from lacuna_server.refactor.plan import Plan
from lacuna_server.refactor.recipes import by_recipe

ANNOTATE = by_recipe("annotations", {})
CODE = "def f(a, b=1):\n    return a\n\n\n" * 3


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    for name in ("a.py", "lib/b.py"):
        (tmp_path / name).write_text(CODE)
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run([*GIT, *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_requests_with_one_hole_and_with_many_give_the_same_result(tree: Path) -> None:
    found = find(tree, ANNOTATE)
    alone, first = run(found, Scripted(lambda region: "int"), lambda done: None, max_holes=1)
    together, second = run(found, Scripted(lambda region: "int"), lambda done: None)
    assert first == second
    assert (alone.places, alone.holes, alone.files, alone.requests) == (18, 12, 2, 12)
    assert (together.places, together.holes, together.files, together.requests) == (18, 12, 2, 2)
    outcome = write(found, second, tree)
    assert outcome == benchmark.Outcome(2, (), (), 0)
    assert (tree / "a.py").read_text() == CODE.replace("(a, b=1)", "(a: int, b: int = 1) -> int")
    assert "holes a request" in [column.header for column in benchmark.table([alone, together]).columns]


def test_a_limit_keeps_the_first_places(tree: Path) -> None:
    found = find(tree, ANNOTATE)
    assert [len(rewrites) for _, rewrites in first(found, 11)] == [9, 2]
    assert [len(rewrites) for _, rewrites in first(found, 4)] == [4]
    assert first(found, 0) == found


def test_broken_files_and_changed_lines_are_found(tree: Path) -> None:
    found = find(tree, ANNOTATE)
    for file in tree.rglob("*.py"):
        file.write_text(CODE + "return 1\n" + CODE.replace("return a", "return (a"))
    outcome = write(found, Plan("nothing", ()), tree)
    assert len(outcome.unparsed_files) == len(outcome.uncompiled_files) == 2
    (tree / "a.py").write_text(CODE.replace("return a", "return b"))
    assert write(found, Plan("nothing", ()), tree).lines_outside == 3
