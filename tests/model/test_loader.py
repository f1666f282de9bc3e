import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

from lacuna_kernels import attention_dtype, native
from lacuna_model import loader, models
from lacuna_model.adapter import save_adapter
from lacuna_model.engine import Engine
from lacuna_model.errors import DeviceError, ModelNotFoundError, WeightsError
from lacuna_model.loader import LoadedModel, load_model
from lacuna_model.params import InfillRequest, Region, Snippet
from lacuna_model.snippets.format import join
from lacuna_model.transformer import NoStore, Transformer

from . import gguf_files, tiny

NAME = "smollm2-135m"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def adapter(tmp_path: Path, compiled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An adapter of the tiny model in the place of the one that ships, and a cache of the test's own."""
    file = tmp_path / "adapter.safetensors"
    save_adapter(file, tiny.adapter(), {})
    monkeypatch.setattr(models, "adapter_path", lambda info: file)
    monkeypatch.setenv(models.CACHE_VARIABLE, str(tmp_path / "cache"))
    # What is compiled for this machine is the same for every test.
    (tmp_path / "cache").mkdir()
    models.kernels_dir().symlink_to(compiled, target_is_directory=True)
    # Threads are the whole process's.
    monkeypatch.setattr(loader, "choose_threads", torch.get_num_threads)
    return file


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return gguf_files.write(tmp_path / "tiny.gguf")


def prepared() -> list[Path]:
    return sorted((models.cache_dir() / "prepared").glob("*"))


def logits(model: Transformer) -> torch.Tensor:
    ids = torch.randint(tiny.CONFIG.vocab_size, (1, 30), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        return model.head(model.hidden(model.embed(ids), torch.arange(30), NoStore()))


def assert_same(one: LoadedModel, other: LoadedModel) -> None:
    for side in ("base", "canvas"):
        assert torch.equal(logits(getattr(one, side)), logits(getattr(other, side)))
    assert torch.equal(one.mask_embedding, other.mask_embedding)
    assert one.tokenizer.fingerprint == other.tokenizer.fingerprint


def test_both_sides_are_what_their_files_say(weights: Path, adapter: Path) -> None:
    model = load_model(NAME, path=weights, precision="float32")
    assert torch.equal(logits(model.base), logits(tiny.transformer()))
    expected = logits(tiny.loaded().canvas)
    # The adapter was stored in 8 bit.
    assert (logits(model.canvas) - expected).norm() / expected.norm() < 0.05
    assert model.canvas.head is model.base.head


def test_8_bit_is_close_to_float32(weights: Path, adapter: Path) -> None:
    exact, fast = (load_model(NAME, path=weights, precision=precision) for precision in ("float32", "int8"))
    for side in ("base", "canvas"):
        expected, got = (logits(getattr(model, side)) for model in (exact, fast))
        assert (got - expected).norm() / expected.norm() < 0.05


def test_bfloat16_is_close_to_float32(weights: Path, adapter: Path) -> None:
    exact, narrow = (
        load_model(NAME, path=weights, precision=precision, device="cpu") for precision in ("float32", "bfloat16")
    )
    assert narrow.cache_dtype is attention_dtype(torch.device("cpu"))
    for side in ("base", "canvas"):
        expected, got = (logits(getattr(model, side)) for model in (exact, narrow))
        assert (got - expected).norm() / expected.norm() < 0.02


def test_a_device_that_is_not_here_is_refused(weights: Path, adapter: Path) -> None:
    with pytest.raises(DeviceError, match="gpu"):
        load_model(NAME, path=weights, device="gpu")


@pytest.mark.parametrize("precision", ["float32", "int8", "bfloat16"])
def test_the_second_load_only_reads_what_the_first_prepared(
    weights: Path, adapter: Path, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_model(NAME, path=weights, precision=precision)
    assert len(prepared()) == 1
    monkeypatch.setattr(loader, "_prepare", None)  # whoever calls it now fails
    assert_same(load_model(NAME, path=weights, precision=precision), first)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_what_the_first_load_prepared_is_read_from_its_file_and_not_kept_twice(weights: Path, adapter: Path) -> None:
    model = load_model(NAME, path=weights, precision="float32")
    assert str(prepared()[0]) in Path("/proc/self/maps").read_text()
    assert_same(load_model(NAME, path=weights, precision="float32"), model)


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "foreign"])
def test_a_damaged_prepared_file_is_made_anew(weights: Path, adapter: Path, damage: str) -> None:
    first = load_model(NAME, path=weights, precision="int8")
    (file,) = prepared()
    data = file.read_bytes()
    if damage == "foreign":
        save_adapter(file, tiny.adapter(), {"about": "{}"})
    else:
        file.unlink()  # the first model still reads its tensors from what was there
        file.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "garbage": b"\xff" * 4000}[damage])
    assert_same(load_model(NAME, path=weights, precision="int8"), first)
    assert prepared() == [file]
    assert file.read_bytes() == data


@pytest.mark.parametrize("changed", ["weights", "adapter", "precision"])
def test_a_prepared_file_of_other_files_is_kept_beside_the_last_one(
    weights: Path, adapter: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "PREPARED_KEPT", 2)
    load_model(NAME, path=weights, precision="int8")
    (old,) = prepared()
    if changed == "adapter":
        save_adapter(adapter, tiny.adapter(seed=5), {})
    if changed != "precision":
        file = weights if changed == "weights" else adapter
        os.utime(file, ns=(1, 1))
    os.utime(old, ns=(1, 1))
    load_model(NAME, path=weights, precision="float32" if changed == "precision" else "int8")
    (new,) = set(prepared()) - {old}
    os.utime(new, ns=(2, 2))
    load_model(NAME, path=weights, precision="bfloat16")
    assert len(prepared()) == 2
    assert new in prepared()


def test_a_cache_that_cannot_be_written_is_done_without_and_said_once(
    weights: Path, adapter: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache" / "prepared"
    folder.write_text("a file where the folder should be")
    assert load_model(NAME, path=weights, precision="float32").config == load_model(NAME, path=weights).config
    (said,) = (record.getMessage() for record in caplog.records if str(folder) in record.getMessage())
    assert "(Not a directory)" in said
    assert "LACUNA_CACHE" in said


def test_a_full_disk_leaves_no_half_a_file(
    weights: Path,
    adapter: Path,
    full_disk: Callable[[], AbstractContextManager[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with full_disk():
        model = load_model(NAME, path=weights, precision="float32")
    assert prepared() == []
    assert "cannot be written to" in caplog.text
    assert_same(load_model(NAME, path=weights, precision="float32"), model)
    assert len(prepared()) == 1


@pytest.mark.parametrize("content", [b"", b"\xff" * 4000], ids=["empty", "garbage"])
def test_a_damaged_adapter_is_refused(weights: Path, adapter: Path, content: bytes) -> None:
    adapter.write_bytes(content)
    with pytest.raises(WeightsError, match=r"adapter\.safetensors is not a readable adapter"):
        load_model(NAME, path=weights)


def test_damaged_weights_are_refused(weights: Path, adapter: Path) -> None:
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(WeightsError, match=r"tiny\.gguf"):
        load_model(NAME, path=weights)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ModelNotFoundError, match=r"unknown model 'none'"):
        load_model("none")


def test_an_engine_loads_and_fills(weights: Path, adapter: Path) -> None:
    engine = Engine(load_model(NAME, path=weights))
    result = engine.fill(InfillRequest("x = \n", (Region(4, 4, max_tokens=4),)))
    assert result.status == "ok"
    assert result.text == f"x = {result.fills[0]}\n"


def test_snippets_are_read_under_their_paths() -> None:
    snippets = (Snippet("a.py", "x = 1"), Snippet("b/c.py", "y = 2\n"))
    assert join(snippets) == "# a.py\nx = 1\n# b/c.py\ny = 2\n"
    assert join(()) == ""


@pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")
def test_8_bit_is_taken_where_our_kernels_run(weights: Path, adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "default_precision", lambda device: "float32")
    assert load_model(NAME, path=weights).cache_dtype is torch.bfloat16
    monkeypatch.setattr(native, "load", lambda folder, threads: None)
    assert load_model(NAME, path=weights).cache_dtype is torch.float32


def test_precision_and_threads_suit_the_machine() -> None:
    assert loader.default_precision(torch.device("cpu")) in ("int8", "float32")
    assert loader.default_precision(torch.device("cuda")) == "bfloat16"
    assert 1 <= loader.choose_threads() <= 8
