import math
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.model import tiny

from lacuna_model.adapter import load_adapter, merge_adapter
from lacuna_model.assembly import fuse
from lacuna_model.errors import WeightsError
from lacuna_model.train.loop import Trainer

from .train_tiny import trainer

Losses = dict[int, float]
STEPS = 60


def losses(running: Trainer, folder: Path) -> Losses:
    """Train and return the loss of every step."""
    found: Losses = {}
    running.run(folder, lambda report: found.update({int(report["step"]): report["loss"]}))
    return found


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Losses:
    folder = tmp_path_factory.mktemp("unbroken")
    return losses(trainer(folder, max_steps=STEPS), folder)


def test_the_loss_falls_on_a_few_documents(unbroken: Losses) -> None:
    assert [*unbroken] == [*range(1, STEPS + 1)]
    first, last = ([unbroken[step] for step in steps] for steps in (range(1, 11), range(STEPS - 9, STEPS + 1)))
    assert sum(last) < 0.8 * sum(first)


def test_the_same_seed_gives_the_same_losses_whoever_draws_the_batches(unbroken: Losses, tmp_path: Path) -> None:
    again = losses(trainer(tmp_path, max_steps=50, workers=2), tmp_path)
    assert again == {step: unbroken[step] for step in range(1, 51)}


def test_another_seed_gives_others(unbroken: Losses, tmp_path: Path) -> None:
    assert losses(trainer(tmp_path, max_steps=1, seed=1), tmp_path)[1] != unbroken[1]


def test_a_resumed_run_goes_on_as_the_unbroken_one(unbroken: Losses, tmp_path: Path) -> None:
    losses(trainer(tmp_path, max_steps=20), tmp_path)
    second = trainer(tmp_path, max_steps=40)
    second.resume(tmp_path)
    assert losses(second, tmp_path) == {step: unbroken[step] for step in range(21, 41)}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_killed_run_resumes_from_its_last_checkpoint(unbroken: Losses, tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-W", "error", str(Path(__file__).with_name("train_tiny.py")), str(tmp_path)]
    seen: Losses = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            step, loss = line.split()
            seen[int(step)] = float(loss)
            if int(step) == 5:
                process.send_signal(getattr(signal, name))
    assert process.returncode == (-signal.SIGKILL if name == "SIGKILL" else 0)
    resumed = trainer(tmp_path, max_steps=STEPS)
    resumed.resume(tmp_path)
    start = resumed.progress.step
    # A signal that asks finishes the step and saves; one that kills leaves what was saved last.
    assert start >= 4 if name == "SIGKILL" else start == max(seen)
    assert seen == {step: unbroken[step] for step in seen if step <= STEPS} | {s: seen[s] for s in seen if s > STEPS}
    assert losses(resumed, tmp_path) == {step: unbroken[step] for step in range(start + 1, STEPS + 1)}


def test_handlers_are_put_back(tmp_path: Path) -> None:
    before = [signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)]
    trainer(tmp_path, max_steps=1).run(tmp_path, lambda report: None)
    assert [signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_run_ends_with_an_adapter_that_can_be_merged(tmp_path: Path) -> None:
    running = trainer(tmp_path, max_steps=3)
    running.run(tmp_path / "new", lambda report: None)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["adapter.safetensors", "checkpoint.pt"]
    learnt, metadata = load_adapter(tmp_path / "new" / "adapter.safetensors")
    assert metadata["step"] == "3"
    assert int(metadata["slots_seen"]) == running.progress.slots_seen > 0
    assert int(metadata["tokens_seen"]) == running.progress.tokens_seen > 0
    base = fuse(tiny.state(), tiny.CONFIG)
    merged = merge_adapter(base, learnt)
    assert merged.keys() == base.keys()
    assert not torch.equal(merged["layers.0.qkv"], base["layers.0.qkv"])


def test_minutes_count_over_all_runs(tmp_path: Path) -> None:
    running = trainer(tmp_path, max_steps=2)
    running.progress.seconds = 299.0
    running.save(tmp_path)
    second = trainer(tmp_path, minutes=4.9)
    second.resume(tmp_path)
    assert losses(second, tmp_path) == {}


def test_a_damaged_checkpoint_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"nothing")
    with pytest.raises(WeightsError, match=r"checkpoint\.pt"):
        trainer(tmp_path).resume(tmp_path)


def test_the_rate_warms_up_stays_and_falls(tmp_path: Path) -> None:
    running = trainer(tmp_path, max_steps=100, warmup_steps=10, decay=0.2, final_rate=0.1)
    rates = []
    for step in range(101):
        running.progress.step = step
        rates.append(running.learning_rate())
    assert rates[0] == pytest.approx(0.001)
    assert {*rates[9:81]} == {0.01}
    assert rates[80:] == sorted(rates[80:], reverse=True)
    assert rates[100] == pytest.approx(0.001)


def test_the_steps_left_are_planned_once_and_recorded(tmp_path: Path) -> None:
    """Three quarters of the minutes are used up at step 6: two more steps are planned, whatever time they take."""
    running = trainer(tmp_path, minutes=10.0, decay=0.25, final_rate=0.1)
    running.progress.step, running.progress.seconds = 6, 451.0
    running.save(tmp_path)
    second = trainer(tmp_path, minutes=10.0, decay=0.25, final_rate=0.1)
    second.resume(tmp_path)
    assert [*losses(second, tmp_path)] == [7, 8]
    assert second.progress.planned_steps == 8
    # With more minutes to go the rate is up again, and the end open.
    longer = trainer(tmp_path, minutes=20.0, max_steps=10)
    longer.resume(tmp_path)
    assert [*losses(longer, tmp_path)] == [9, 10]
    assert longer.progress.planned_steps == 0


def test_a_report_holds_means_since_the_last(tmp_path: Path) -> None:
    reports: list[dict[str, float]] = []
    trainer(tmp_path, max_steps=6, report_steps=3).run(tmp_path, reports.append)
    assert [report["step"] for report in reports] == [3, 6]
    assert reports[0]["slots_seen"] < reports[1]["slots_seen"]
    for report in reports:
        assert all(math.isfinite(value) for value in report.values())
        assert 0 <= report["masked_accuracy"] <= 1
        assert min(report["tokens_per_second"], report["slots_per_second"], report["peak_share"]) > 0


# What torch itself warns of while it traces would end the trace as an error.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_compiled_run_has_the_losses_of_an_uncompiled_one(
    unbroken: Losses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Traced and cut into graphs as on a GPU, but without the code generation, which takes minutes on a CPU.
    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **options: compiled(function, backend="eager", **options))
    found = losses(trainer(tmp_path, max_steps=3, compile=True), tmp_path)
    assert found == pytest.approx({step: unbroken[step] for step in range(1, 4)}, rel=1e-5)
