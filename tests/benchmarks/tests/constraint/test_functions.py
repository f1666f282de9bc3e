import shutil
from collections.abc import Generator, Iterator

import pytest
from tests.benchmarks.constraint import functions
from tests.model import tiny

from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Snapshot
from lacuna_model.tokens.tokenizer import Tokenizer

TOKENS = Tokenizer(tiny.vocabulary())
TWICE = b"int twice(int a) {\n  int b = a;\n\n  b += a;\n  if (b < 0)\n    b = 0;\n  return b;\n}\n"
NEEDS_MORE = b"Other once(Other a) {\n  Other b;\n  b.set(a);\n  b.get();\n  return b;\n}\n"
SHORT = b"int none() { return 0; }\n"
TEXT = b"#include <own.h>\nnamespace a {\n" + SHORT + TWICE + NEEDS_MORE + TWICE + b"}\n"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@pytest.fixture(scope="module")
def compiler() -> Iterator[functions.Compiler]:
    with functions.Compiler() as own:
        yield own


@pytest.mark.parametrize("gaps", [1, 2, 3])
def test_the_counts_tell_the_ways_apart(compiler: functions.Compiler, gaps: int) -> None:
    """A model that knows the fills with the constraint, and writes a bracket too many without it."""
    (function,) = functions.functions([TEXT], compiler)
    (case,) = functions.cases([function], TOKENS, gaps=gaps, slots=4, seed=3)
    assert len(case.regions) == gaps
    truths = tuple(TOKENS.decode_bytes(truth).decode() for truth in case.truths)

    def fill(request: InfillRequest) -> Generator[Snapshot, None, InfillResult]:
        own = truths if request.options.syntax else (truths[0] + "(", *truths[1:])
        yield Snapshot(1, ("",) * gaps, ((),) * gaps)
        return InfillResult("ok", "", own, FillStats())

    without, with_constraint = functions.rows(list(functions.tried(case, TOKENS, fill, compiler)))
    assert (without.functions, without.parses, without.well_formed, without.compiles, without.exact) == (1, 0, 0, 0, 0)
    assert functions.Row("with", gaps, 1, 0, 1, 1, 1, 1) == with_constraint
