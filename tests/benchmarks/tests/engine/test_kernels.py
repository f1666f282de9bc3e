"""The benchmark of kernels and their references. Without a GPU, kernels are interpreted and not timed."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")

from tests.benchmarks.engine import kernels as benchmark

from lacuna_kernels import native
from lacuna_model.network.devices import choose_device


def test_every_kernel_is_reported_right_and_timed_on_a_gpu_only() -> None:
    device = choose_device()
    costs = benchmark.bench_kernels(device, runs=2)
    kernels = {"rms_norm", "add_rms_norm", "rotary", "unmask", "attention", "attention, masked"}
    assert {cost.kernel for cost in costs} == kernels
    assert all(cost.right for cost in costs)
    assert {cost.p50_us is not None for cost in costs} == {device.type == "cuda"}
    assert benchmark.table(costs, "Kernels").row_count == len(costs)


@pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")
def test_linears_in_c_are_right_and_timed_for_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "INTERPRETED_ROWS", ())
    costs = benchmark.bench_kernels(torch.device("cpu"), runs=1, native=native.build(tmp_path))
    assert {cost.kernel.partition(" ")[0] for cost in costs} == {"layer"}
    assert {cost.rows for cost in costs} == set(benchmark.LINEAR_ROWS)
    assert all(cost.right and cost.p50_us for cost in costs)
