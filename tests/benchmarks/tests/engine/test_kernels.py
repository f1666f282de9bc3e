"""The benchmark of kernels and their references. Without a GPU, kernels are interpreted and not timed."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")

from tests.benchmarks.engine import kernels as benchmark

from lacuna_kernels import gpu, native, reference
from lacuna_model.core.errors import RequestError
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


def test_a_wrong_kernel_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = reference.rotary
    monkeypatch.setattr(reference, "rotary", lambda x, cos, sin: plain(x, cos, -sin))
    costs = benchmark.bench_kernels(choose_device(), runs=1)
    assert {cost.kernel for cost in costs if not cost.right} == {"rotary"}


def test_a_case_is_timed_and_compared_with_its_reference() -> None:
    x, device = torch.ones(1), torch.device("cpu")
    case = benchmark.Case("kernel", 1, torch.float32, lambda: x, lambda: (x + 1) - 1)
    cost = benchmark._cost(case, 3, device)
    assert 0 < cost.p50_us <= cost.p95_us
    assert cost.reference_p50_us > 0
    assert cost.difference == 0
    assert benchmark.table([cost], "Kernels").row_count == 1


def test_without_triton_the_error_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "triton_failure", lambda: "No module named 'triton'")
    with pytest.raises(RequestError, match="No module named 'triton'"):
        benchmark.bench_kernels(torch.device("cpu"), runs=1)
