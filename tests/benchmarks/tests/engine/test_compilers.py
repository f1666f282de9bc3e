import platform
from pathlib import Path

import pytest
from tests.benchmarks.engine import compilers

from lacuna_kernels import instruction_sets, native
from lacuna_model.core.errors import RequestError
from lacuna_model.fim.loading import LoadedFim


def test_two_models_take_turns_and_have_the_same_bits(model: LoadedFim) -> None:
    costs = compilers.bench_compilers(model, model, context_tokens=300, runs=2)
    assert [cost.rows for cost in costs] == [0, *compilers.ROWS]
    assert all(cost.same and cost.system_ms > 0 and cost.wheel_ms > 0 for cost in costs)
    assert compilers.table(costs, instruction_sets.AVX2).row_count == len(costs)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or instruction_sets.AVX2 not in native.supported(), reason="no CPU with AVX2"
)
def test_in_the_block_the_kernels_are_those_of_a_wheel(tmp_path: Path) -> None:
    with compilers.with_instructions("AVX2") as chosen:
        compiled = native.load(tmp_path / "compiled", 2)
        with compilers.of_a_wheel(tmp_path, chosen):
            kernels = native.load(tmp_path / "none", 2)
        assert kernels is not None
        assert compiled is not None
        assert compiled.path.parent == tmp_path / "compiled"
        assert kernels.path.parent == tmp_path
        assert kernels.instructions == chosen == instruction_sets.AVX2
    assert not instruction_sets.BUILT.exists()
    assert len(native.INSTRUCTION_SETS) > 1


@pytest.mark.parametrize("name", ["AVX3", *(["NEON"] if platform.machine() == "x86_64" else [])])
def test_instructions_that_the_cpu_does_not_have_are_refused(name: str) -> None:
    with pytest.raises(RequestError, match=f"no {name}"), compilers.with_instructions(name):
        pass
