"""Fill-in-the-middle models from GGUF files: prepared once, then mapped; a failure is an error of one line."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from tests.model import checkpoints, gguf_files, started, tiny, tiny_masks
from tests.model.elsewhere import Elsewhere

from lacuna_model.core.errors import WeightsError
from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.fim import loading
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim, load_fim
from lacuna_model.loading import rows_file
from lacuna_model.network.config import HOST_POSITIONS, MAX_POSITIONS

from . import tiny_fim

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return gguf_files.write_fim(tmp_path / "tiny.gguf")


def next_logits(model: LoadedFim) -> torch.Tensor:
    ids = model.tokenizer.encode(tiny.CODE)[:60]
    context = FimContext(model.tracks(), model.tokenizer, model.fim)
    track = context.reader.new()
    track.become(ids, 0)
    with torch.inference_mode():
        return context.reader.logits(context.reader.read([[track]])[track])


def test_the_logits_equal_those_of_the_weights_in_float32(file: Path) -> None:
    model = load_fim(file, "tiny", threads=1, precision="float32")
    assert model.fim == tiny_fim.FIM
    ids = model.tokenizer.encode(tiny.CODE)[:60]
    torch.testing.assert_close(next_logits(model), tiny_fim.plain_logits(tiny_fim.loaded(), ids), atol=1e-3, rtol=1e-3)


def test_a_second_start_maps_what_the_first_prepared(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next_logits(load_fim(file, "tiny", threads=1))
    (kept,) = (cache / "prepared").iterdir()
    assert kept.suffix == ".safetensors"
    monkeypatch.setattr(loading, "GgufFile", None)  # the file is not opened again
    torch.testing.assert_close(next_logits(load_fim(file, "tiny", threads=1)), first)


def test_what_only_drafts_has_mask_rows_alone(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("masks", "infill")
    written = {one: tiny_masks.write(tmp_path / f"{one}.safetensors", tiny_fim.CONFIG, kind=one) for one in kinds}
    monkeypatch.setattr(rows_file, "shipped", lambda name, kind="masks": written.get(kind))
    found = [load_fim(file, "tiny", threads=1, precision="float32", drafts=drafts) for drafts in (False, True)]
    assert [tuple(one.layers.added) for one in found] == [kinds, kinds[:1]]
    assert [one.fill_kind for one in found] == ["infill", ""]


def test_models_of_the_same_tokens_have_one_tokenizer(file: Path, tmp_path: Path) -> None:
    other = gguf_files.write_fim(tmp_path / "other.gguf")
    for _ in range(2):  # what the first start prepares, the second reads
        large, small = load_fim(file, "large", threads=1), load_fim(other, "small", threads=1, drafts=True)
        assert small.tokenizer is large.tokenizer


def test_the_positions_of_a_model_are_those_that_its_device_reads_in_time(tmp_path: Path) -> None:
    config = replace(tiny_fim.CONFIG, max_positions=MAX_POSITIONS)
    file = gguf_files.write_fim(tmp_path / "long.gguf", config=config)
    assert load_fim(file, "long", threads=1, precision="float32").config.max_positions == HOST_POSITIONS
    with pytest.MonkeyPatch.context() as patch, Elsewhere():
        started.find(patch)
        found = load_fim(file, "long", threads=1)
        assert found.config.max_positions == len(found.layers.rotations.cos) == MAX_POSITIONS


def test_a_window_has_the_tokens_that_it_is_given_and_leaves_room_for_fills(file: Path) -> None:
    asked = InfillRequest(tiny.CODE * 40, (Region(9_000, 9_000, max_tokens=2),), path="a.py")
    sizes = []
    for window in (40, 400, 1_000_000):
        engine = Engine.load(str(file), threads=1, window=window)
        found = engine.fill(asked)
        assert found.status in ("ok", "no_valid_fill")
        sizes.append(found.stats.context_tokens)
    assert 10 < sizes[0] < 60 < sizes[1] < 500 < sizes[2] <= engine.positions


def test_a_model_without_fim_tokens_is_an_error_of_one_line(tmp_path: Path) -> None:
    plain = gguf_files.write(tmp_path / "plain.gguf")
    with pytest.raises(WeightsError, match=r"plain\.gguf holds a model without fill-in-the-middle tokens") as caught:
        load_fim(plain, "plain")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("precision", ["float32", ""])
def test_a_folder_gives_the_logits_of_a_file_with_the_same_weights(file: Path, tmp_path: Path, precision: str) -> None:
    folder = checkpoints.write_fim(tmp_path / "folder", rms_norm_eps=tiny_fim.CONFIG.rms_norm_eps)
    model = load_fim(folder, "tiny", threads=1, precision=precision)
    assert model.fim == tiny_fim.FIM
    assert model.tokenizer.encode(tiny.CODE) == load_fim(file, "tiny", threads=1).tokenizer.encode(tiny.CODE)
    expected = next_logits(load_fim(file, "tiny", threads=1, precision=precision))
    torch.testing.assert_close(next_logits(model), expected, atol=1e-4, rtol=1e-4)
