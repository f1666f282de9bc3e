from pathlib import Path

import pytest
import torch

from lacuna_model.adapter import load_adapter, merge_adapter, save_adapter
from lacuna_model.assembly import build_transformer, fuse
from lacuna_model.errors import WeightsError
from lacuna_model.transformer import NoStore

from . import tiny


def hidden(model: object, ids: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return model.hidden(model.embed(ids), torch.arange(ids.shape[1]), NoStore())


IDS = torch.randint(tiny.CONFIG.vocab_size, (1, 30), generator=torch.Generator().manual_seed(0))


def test_training_starts_from_the_base() -> None:
    canvas = tiny.trainable()
    torch.testing.assert_close(hidden(canvas.transformer, IDS), hidden(tiny.transformer(), IDS), atol=1e-5, rtol=1e-5)
    embedding = tiny.state()["embedding"]
    torch.testing.assert_close(canvas.mask_embedding.detach(), embedding.mean(dim=0))


def test_what_learns_is_what_an_adapter_holds() -> None:
    canvas = tiny.trainable(rank=4)
    names = {name.replace("/", ".") for name, _ in canvas.named_parameters()}
    assert set(canvas.learnt()) == names
    layers = [f"adapted.layers.{i}.{part}.{factor}" for i in range(3) for part in ("qkv", "output", "gate_up", "down")
              for factor in ("up", "down")]  # fmt: skip
    norms = [f"norms.layers.{i}.{part}" for i in range(3) for part in ("attn_norm", "mlp_norm")]
    assert names == {*layers, *norms, "norms.final_norm", "mask_embedding"}


def test_merged_equals_adapted() -> None:
    learnt, canvas = tiny.adapter(), tiny.trainable()
    with torch.no_grad():
        for name, parameter in canvas.named_parameters():
            parameter.copy_(learnt[name.replace("/", ".")])
    base = fuse(tiny.state(), tiny.CONFIG)
    merged = build_transformer(tiny.CONFIG, merge_adapter(base, learnt))
    torch.testing.assert_close(hidden(canvas.transformer, IDS), hidden(merged, IDS), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(hidden(merged, IDS), hidden(tiny.transformer(), IDS), atol=0.1)


def test_merging_leaves_the_base_alone() -> None:
    base, before = fuse(tiny.state(), tiny.CONFIG), fuse(tiny.state(), tiny.CONFIG)
    merged = merge_adapter(base, tiny.adapter())
    assert all(torch.equal(base[name], before[name]) for name in before)
    assert torch.equal(merged["embedding"], base["embedding"])


def test_a_saved_adapter_comes_back(tmp_path: Path) -> None:
    learnt = tiny.adapter()
    save_adapter(tmp_path / "adapter.safetensors", learnt, {"steps": "7"})
    loaded, metadata = load_adapter(tmp_path / "adapter.safetensors")
    assert metadata == {"steps": "7"}
    assert loaded.keys() == learnt.keys()
    for name, tensor in learnt.items():
        if name.startswith("adapted."):
            step = tensor.abs().amax(dim=1, keepdim=True) / 127
            assert ((loaded[name] - tensor).abs() <= 0.5001 * step).all()
        else:
            assert torch.equal(loaded[name], tensor)
    base = fuse(tiny.state(), tiny.CONFIG)
    exact, stored = (hidden(build_transformer(tiny.CONFIG, merge_adapter(base, one)), IDS) for one in (learnt, loaded))
    assert (exact - stored).norm() / exact.norm() < 0.05


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage"])
def test_a_damaged_adapter_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "adapter.safetensors"
    save_adapter(file, tiny.adapter(), {})
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "garbage": b"\xff" * 4000}[damage])
    with pytest.raises(WeightsError, match=r"adapter\.safetensors is not a readable adapter"):
        load_adapter(file)


def test_a_full_disk_is_named_and_leaves_the_last_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, original = tmp_path / "adapter.safetensors", Path.open
    save_adapter(file, tiny.adapter(), {"step": "1"})

    def full(path: Path, mode: str = "r") -> object:
        return original(Path("/dev/full"), "wb") if mode == "xb" else original(path, mode)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(WeightsError, match=r"adapter\.safetensors: cannot write the adapter: No space left"):
        save_adapter(file, tiny.adapter(seed=2), {"step": "2"})
    assert load_adapter(file)[1] == {"step": "1"}
    assert list(tmp_path.iterdir()) == [file]
