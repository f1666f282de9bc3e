import os
from pathlib import Path

import pytest

from lacuna_model.core.errors import RequestError
from lacuna_server.refactor.journal import sha256
from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit, apply
from lacuna_server.refactor.rewriting.refactoring import by_structure

from .bench import Bench, Scripted

ADD = by_structure("get($$$ARGS)", "get($$$ARGS, timeout=<<fill>>)")


@pytest.mark.parametrize(
    ("fill", "kept"),
    [
        ("3", True),
        ("f(a)[0]", True),
        ("{'a': (1, 2)}", True),
        ("')'", True),
        ("\n# why\n3", True),
        ("3)  # the rest", False),
        ("3), get(4", False),
        ("3) + (4", False),
        ("", False),
    ],
)
def test_a_fill_must_stay_inside_its_hole(bench: Bench, fill: str, kept: bool) -> None:
    (edits,), _ = bench.edits(ADD, [bench.source("get(1)\n")], Scripted(lambda region: fill))
    assert (edits.edits[0].status == "ready") is kept


@pytest.mark.parametrize(
    ("name", "template"),
    [("a.py", "f('<<fill>>.', $A)"), ("a.js", "f('<<fill>>.', $A)"), ("a.go", "f(`<<fill>>.`, $A)")],
)
def test_a_hole_may_be_part_of_a_string_or_a_comment(bench: Bench, name: str, template: str) -> None:
    before = "package a\n\nfunc g() {\n\tget(1)\n}\n" if name == "a.go" else "get(1)\n"
    made = bench.apply(by_structure("get($A)", template), before, name, Scripted(lambda region: "a b"))
    assert "a b." in made
    comment = "get($A)  # <<fill>> end" if name == "a.py" else "get($A) // <<fill>> end"
    assert "a b end" in bench.apply(by_structure("get($A)", comment), before, name, Scripted(lambda region: "a b"))


def plan(*paths: Path) -> Plan:
    edits = (PlannedEdit(4, 5, "2", "one"), PlannedEdit(6, 6, "", "two", "failed", "nothing fits"))
    return Plan("t", tuple(FileEdits(str(path), sha256(path.read_bytes()), None, edits) for path in paths))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_bytes(b"x = 1\r\n")
    return [tmp_path / "a.py", tmp_path / "b.py"]


@pytest.mark.parametrize("how", ["read-only", "hard links"])
def test_a_plan_does_not_replace_a_file_that_must_not_be(files: list[Path], how: str) -> None:
    made = plan(*files)
    files[1].chmod(0o444) if how == "read-only" else os.link(files[1], files[1].with_name("other.py"))
    with pytest.raises(RequestError, match=rf"b\.py .*{how}.*; nothing was written"):
        apply(made)
    assert files[0].read_bytes() == files[1].read_bytes() == b"x = 1\r\n"
