import math
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.benchmarks.constraint import syntax as bench_syntax
from tests.model import tiny

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Snapshot
from lacuna_model.tokens.tokenizer import Tokenizer

TEXT_FOLDER = Path(__file__).parents[3] / "data" / "syntax"
TEXT = (TEXT_FOLDER / "ledger.py").read_bytes()
TOKENS = Tokenizer(tiny.vocabulary())


def test_the_constraint_never_delivers_a_text_that_does_not_parse() -> None:
    found = bench_syntax.run({"python": [TEXT]}, TOKENS, gaps=(1, 2), slots=(4,), cases=6)
    cells = [cell for cell in found if cell.language == "python"]
    assert [(cell.mode, cell.gaps) for cell in cells] == [(mode, n) for n in (1, 2) for mode in bench_syntax.MODES]
    constrained = [cell for cell in cells if cell.mode == "constraint"]
    assert all(cell.accepted == 1.0 and cell.cases for cell in constrained)
    assert all(math.isnan(cell.oracle) or cell.oracle == 1.0 for cell in constrained)


def test_the_figures_of_an_engine_come_from_its_snapshots_and_results() -> None:
    asked: list[InfillRequest] = []

    def fill(request: InfillRequest) -> Generator[Snapshot, None, InfillResult]:
        asked.append(request)
        for step, waited in ((0, 0.0), (1, 1.0), (1, 1.5), (2, 4.0)):
            yield Snapshot(step, ("",), ((),), constraint_ms=waited)
        stats = FillStats(steps=2, ms=50.0, encode_ms=10.0, constraint_ms=4.5, tokens=3)
        if request.options.syntax:
            return InfillResult("no_valid_fill", ("",), stats)
        return InfillResult("ok", ("(",), stats)

    off, on, *_ = bench_syntax.run({"python": [TEXT]}, TOKENS, fill=fill, gaps=(1,), slots=(4,), cases=3)
    assert (off.clean, off.refused, off.oracle) == (0.0, 0.0, 0.0)
    assert (on.refused, on.accepted) == (1.0, 1.0)
    assert on.ms_p50 == pytest.approx(2.0)  # the mean of 1 and 3, which are equally frequent
    assert on.ms_p95 == pytest.approx(3.0)
    assert on.share == pytest.approx(3.0 / 20.0)
    assert {request.options.syntax for request in asked} == {False, True}
