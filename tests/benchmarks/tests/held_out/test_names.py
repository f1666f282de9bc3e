from pathlib import Path

import pytest
from tests.benchmarks.held_out.names import Filled, cases, measure, read, rows
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


def test_lines_are_filled_from_a_name_on_that_only_another_file_or_a_package_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACUNA_CACHE", str(tmp_path / "cache"))
    project = tmp_path / "project"
    site = project / ".venv" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (project / ".venv" / "pyvenv.cfg").touch()
    (site / "paper.pyi").write_text("def glue(a, b): ...\n")
    (project / "main.py").write_text(MAIN)
    (project / "shop.py").write_text("class Till:\n    pass\n\n\ndef other():\n    pass\n")
    wanted = cases([("python", project)], 5, seed=1)
    found = [(case.kind, case.name, case.truth) for case in wanted]
    assert found == [("file", "Till", "Till()"), ("package", "glue", "glue(1, till)")]
    assert all(case.before + case.truth + case.after == MAIN for case in wanted)

    def fill(request: InfillRequest) -> InfillResult:
        return InfillResult("ok", ("glue(1, till)\n" if request.options.names else "glued(1, till)\n",), FillStats())

    with Records(None, Filled) as records:
        own = [row for row in rows(measure(fill, PieceCounter(), wanted[1:], read, records))]
    figures = [(row["way"], row["n"], row["right first lines"], row["lines with one"]) for row in own[:2]]
    assert figures == [("signatures", 1, 0, 1), ("soft", 1, 1, 0)]
