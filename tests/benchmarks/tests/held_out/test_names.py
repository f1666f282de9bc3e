from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.held_out.names import WAYS, cases, decoded, measure, read, table

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult
from lacuna_model.snippets.pieces import PieceCounter

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


def test_signatures_are_read_and_of_several_candidates_the_one_whose_names_exist_is_taken(project: Path) -> None:
    asked = list[InfillRequest]()

    def fill(request: InfillRequest) -> InfillResult:
        asked.append(request)
        others = (("glue(1, till)",),) if request.candidates > 1 else ()
        return InfillResult("ok", ("glued(1, till)\n",), FillStats(), alternatives=others)

    wanted = [case for case in cases([("python", project)], 5, seed=1) if case.kind == "package"]
    found = {one.way: one for one in measure(fill, PieceCounter(), wanted, WAYS, read)}
    assert [found[way].right for way in WAYS] == [False, False, True, False]
    assert [found[way].unknown for way in WAYS] == [("glued",), ("glued",), (), ("glued",)]
    quoted = [{one.path for one in request.snippets} for request in asked]
    assert ["paper.pyi" in paths for paths in quoted] == [False, True, True, True]
    assert [request.options.names for request in asked] == [False, False, False, True]
    assert table(list(found.values())).row_count > 0


def test_what_is_recorded_is_not_filled_again(project: Path) -> None:
    wanted = cases([("python", project)], 5, seed=1)

    def fill(request: InfillRequest) -> InfillResult:
        return InfillResult("ok", ("glue(1)\n",), FillStats())

    first, *_ = measure(fill, PieceCounter(), wanted, ["soft"], read)
    kept = decoded(msgspec.json.encode(first, enc_hook=str))
    assert kept == first
    rest = list(measure(fill, PieceCounter(), wanted, ["soft"], read, {(kept.case, kept.way)}))
    assert [one.case for one in rest] == [case for case in wanted if case != first.case]
