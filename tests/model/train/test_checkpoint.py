from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.model import tiny

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.errors import WeightsError
from lacuna_model.train.checkpoint import Progress, load_checkpoint, load_weights, save_checkpoint

PROGRESS = Progress(step=7, seconds=12.5, slots_seen=300, tokens_seen=4000, planned_steps=9)


def trained(rank: int = 4) -> tuple[TrainableCanvas, torch.optim.Optimizer]:
    """A canvas side and an optimiser with a step behind them."""
    canvas = tiny.trainable(rank)
    optimizer = torch.optim.AdamW(canvas.parameters())
    sum(parameter.square().sum() for parameter in canvas.parameters()).backward()
    optimizer.step()
    return canvas, optimizer


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(path, *trained(), PROGRESS)
    return path


def test_everything_comes_back(saved: Path) -> None:
    canvas = tiny.trainable()
    optimizer = torch.optim.AdamW(canvas.parameters())
    progress = load_checkpoint(saved, canvas, optimizer)
    assert progress == PROGRESS
    expected, expected_optimizer = trained()
    assert all(torch.equal(a, b) for a, b in zip(canvas.parameters(), expected.parameters(), strict=True))
    got, wanted = optimizer.state_dict()["state"], expected_optimizer.state_dict()["state"]
    assert got.keys() == wanted.keys()
    assert all(torch.equal(got[i]["exp_avg_sq"], wanted[i]["exp_avg_sq"]) for i in wanted)


def test_the_frozen_weights_are_not_stored(saved: Path) -> None:
    assert saved.stat().st_size < 200_000
    assert [path.name for path in saved.parent.iterdir()] == ["checkpoint.pt"]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one-byte": lambda data: data[:1],
    "cut": lambda data: data[: len(data) // 2],
    "cut-at-the-end": lambda data: data[:-10],
    "garbage": lambda data: b"\xff" * 4000,
    "text": lambda data: b"not a checkpoint\n" * 50,
    "zeros": lambda data: bytes(len(data)),
    "hole": lambda data: data[:3000] + bytes(2000) + data[5000:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_name(saved: Path, damage: str) -> None:
    saved.write_bytes(DAMAGES[damage](saved.read_bytes()))
    with pytest.raises(WeightsError, match=r"checkpoint\.pt is not a checkpoint of this model \(.+\)"):
        load_checkpoint(saved, *trained())
    with pytest.raises(WeightsError, match=r"checkpoint\.pt is not a checkpoint"):
        load_weights(saved)


@pytest.mark.parametrize("content", [[1, 2], {}, {"canvas": {}, "optimizer": {}, "progress": {}}, None], ids=str)
def test_another_file_of_torch_is_refused(saved: Path, content: object) -> None:
    torch.save(content, saved)
    with pytest.raises(WeightsError, match=r"checkpoint\.pt"):
        load_checkpoint(saved, *trained())


def test_a_checkpoint_of_another_rank_is_refused(saved: Path) -> None:
    with pytest.raises(WeightsError, match=r"checkpoint\.pt"):
        load_checkpoint(saved, *trained(rank=8))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"none\.pt"):
        load_checkpoint(tmp_path / "none.pt", *trained())


def test_its_weights_are_named_as_in_an_adapter(saved: Path) -> None:
    learnt = trained()[0].learnt()
    weights = load_weights(saved)
    assert weights.keys() == learnt.keys()
    assert all(torch.equal(weights[name], learnt[name]) for name in learnt)


def test_a_full_disk_is_named_and_leaves_the_last_checkpoint(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, before = Path.open, saved.read_bytes()

    def full(path: Path, mode: str = "r") -> object:
        return original(Path("/dev/full"), "wb") if mode == "xb" else original(path, mode)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(WeightsError, match=r"checkpoint\.pt: cannot write the checkpoint: "):
        save_checkpoint(saved, *trained(), PROGRESS)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["checkpoint.pt"]
