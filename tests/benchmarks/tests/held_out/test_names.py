from pathlib import Path

import pytest
from tests.benchmarks.held_out.names import WAYS, Filled, cases, measure, read, rows
from tests.benchmarks.records import Records

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult
from lacuna_model.snippets.format import PieceCounter

MAIN = """\
import paper
from shop import Till, other


def run():
    till = Till()
    paper.glue(1, till)
    other()
    other()
    return None
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    site = tmp_path / "project" / ".venv" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (tmp_path / "project" / ".venv" / "pyvenv.cfg").touch()
    (site / "paper.pyi").write_text("def glue(a, b): ...\n")
    (tmp_path / "project" / "main.py").write_text(MAIN)
    (tmp_path / "project" / "shop.py").write_text("class Till:\n    pass\n\n\ndef other():\n    pass\n")
    return tmp_path / "project"


def test_cases_begin_with_a_name_that_only_another_file_or_a_package_declares(project: Path) -> None:
    found = cases([("python", project)], 5, seed=1)
    assert [(case.kind, case.name, case.truth) for case in found] == [
        ("file", "Till", "Till()"),
        ("package", "glue", "glue(1, till)"),
    ]
    assert all(case.before + case.truth + case.after == MAIN for case in found)


def test_of_several_candidates_the_one_whose_names_exist_is_taken_and_what_is_recorded_is_not_filled_again(
    project: Path, tmp_path: Path
) -> None:
    asked = list[InfillRequest]()

    def fill(request: InfillRequest) -> InfillResult:
        asked.append(request)
        others = (("glue(1, till)",),) if request.candidates > 1 else ()
        return InfillResult("ok", ("glued(1, till)\n",), FillStats(), alternatives=others)

    wanted = [case for case in cases([("python", project)], 5, seed=1) if case.kind == "package"]
    for ways in (WAYS[:3], WAYS):
        with Records(tmp_path / "names.jsonl", Filled) as records:
            found = {one.way: one for one in measure(fill, PieceCounter(), wanted, ways, read, records)}
        assert len(asked) == len(ways)
    assert [found[way].right for way in WAYS] == [False, False, True, False]
    assert [found[way].unknown for way in WAYS] == [("glued",), ("glued",), (), ("glued",)]
    quoted = [{one.path for one in request.snippets} for request in asked]
    assert ["paper.pyi" in paths for paths in quoted] == [False, True, True, True]
    assert [request.options.names for request in asked] == [False, False, False, True]
    figures = [
        (row["way"], row["n"], row["right first lines"], row["lines with one"]) for row in rows([*found.values()])
    ]
    assert figures[:4] == [("without", 1, 0, 1), ("signatures", 1, 0, 1), ("ranked", 1, 1, 0), ("soft", 1, 0, 1)]
