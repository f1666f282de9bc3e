from pathlib import Path

import pytest
import torch
from tests.model import tiny
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lacuna_model.train.objective import LossOptions, Objective, to_device
from lacuna_model.train.throughput import describe, peak_flops, step_flops

from .train_tiny import SAMPLES, TOKENIZER, source

CPU = torch.device("cpu")


def test_the_operations_are_those_that_torch_counts(tmp_path: Path) -> None:
    canvas = tiny.trainable(rank=4)
    objective = Objective(tiny.transformer(), canvas, LossOptions(), eog_id=TOKENIZER.eog_id)
    batch = to_device(source(tmp_path, batch_size=3).draw(0), CPU)
    # Of all forms of attention on a CPU, torch counts only the plain one.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        objective.score(batch).loss.backward()
    num_learnt = sum(parameter.numel() for parameter in canvas.parameters() if parameter.ndim == 2)
    counted = step_flops(tiny.CONFIG, SAMPLES, 3, num_learnt)
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.05)


def test_an_unknown_device_is_measured() -> None:
    assert peak_flops(CPU) > 1e6


def test_a_known_device_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert peak_flops(torch.device("cuda")) == 989e12


def test_a_report_is_one_line() -> None:
    figures = dict.fromkeys(
        ("step", "loss", "masked_accuracy", "slots_seen", "tokens_per_second", "slots_per_second", "peak_share"), 0.5
    )
    assert describe(figures).endswith("50.0% of peak")
