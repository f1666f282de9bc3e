from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.benchmarks.engine.kernels import LAYER, ROWS, cases, compared

from lacuna_kernels import native


@pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")
def test_linears_in_c_are_timed_and_a_wrong_one_is_reported(tmp_path: Path) -> None:
    found = list(cases(native.build(tmp_path)))
    assert len(found) == 2 * len(LAYER) * len(ROWS)
    right = compared(found[0], 1)
    assert right["right"] == 1
    assert right["us p50"] > 0
    assert compared(replace(found[0], plain=lambda: 2 * found[0].plain()), 1)["right"] == 0
