"""The form of weights that a GPU reads: prepared once, a layer at a time, and loaded there with all that drafts."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load_file
from tests.model import gguf_files, tiny, tiny_masks
from tests.model.elsewhere import ELSEWHERE, Elsewhere

from lacuna_kernels import gpu
from lacuna_model import readers
from lacuna_model.core.params import DecodeOptions, InfillRequest, ReadContext, Region
from lacuna_model.engine import Engine
from lacuna_model.fim import loading
from lacuna_model.fim.loading import LoadedFim, load_fim
from lacuna_model.loading import rows_file

from . import tiny_fim
from .test_loading import next_logits

pytestmark = pytest.mark.usefixtures("cache")
UNTIED = replace(tiny_fim.CONFIG, tie_embeddings=False)


@pytest.fixture(params=[tiny_fim.CONFIG, UNTIED], ids=["tied", "untied"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return gguf_files.write(
        tmp_path / "tiny.gguf", architecture="qwen2", config=request.param, vocabulary=tiny_fim.VOCABULARY
    )


def narrow(file: Path, **options: bool) -> LoadedFim:
    return load_fim(file, "tiny", threads=1, precision="bfloat16", **options)


def test_a_model_that_only_drafts_has_part_of_a_head(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = next_logits(narrow(file))
    monkeypatch.setattr(loading, "FREQUENT_TOKENS", 64)
    monkeypatch.setattr(loading, "choose_device", lambda wanted: ELSEWHERE)
    with Elsewhere():
        drafting = next_logits(narrow(file, drafts=True))
    torch.testing.assert_close(drafting, exact[:, :64])


def test_all_that_a_request_uses_is_on_the_device(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model with a smaller one that has mask rows, with the syntax constraint and the prior."""
    small = gguf_files.write_fim(tmp_path / "small.gguf")
    masks = tiny_masks.write(tmp_path / "masks.safetensors", tiny_fim.CONFIG)
    monkeypatch.setattr(rows_file, "shipped", lambda name, kind: masks if kind == "masks" else None)
    monkeypatch.setattr(loading, "PassCosts", tiny_fim.Paying)
    monkeypatch.setattr(loading, "default_precision", lambda place, *, drafts: "bfloat16")
    monkeypatch.setattr(loading, "choose_device", lambda wanted: ELSEWHERE)
    gaps = (Region(60, 63, max_tokens=8), Region(150, 163, max_tokens=8))
    with Elsewhere():
        loaded = readers.load(str(file), threads=1, draft_model=str(small))
        assert isinstance(loaded, LoadedFim)
        assert loaded.smaller is not None
        assert loaded.smaller.transformer.masks is not None
        assert loaded.transformer.final_norm.device == ELSEWHERE
        assert loaded.smaller.transformer.masks.device == ELSEWHERE
        asked = InfillRequest(tiny.CODE, gaps, path="a.py")
        sampled = replace(asked, options=DecodeOptions(temperature=0.5))
        for model in (loaded, loaded.smaller):  # the smaller one has masks of its own
            engine = Engine(model)
            for one in (asked, sampled, replace(asked, task=ReadContext())):
                found = engine.fill(one)
                assert found.status in ("ok", "no_valid_fill")
    assert loaded.smaller.costs.ms(1) > 0


def test_a_gpu_reads_8_bit_weights_as_prepared(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pretence: with the form that the GPU's kernels read, on their torch references."""
    exact = next_logits(load_fim(file, "tiny", threads=1, precision="float32"))
    monkeypatch.setattr(gpu, "reads", lambda *tensors: True)
    monkeypatch.setattr(gpu, "triton_failure", lambda: "pretended")
    monkeypatch.setattr(loading, "choose_device", lambda wanted: ELSEWHERE)
    with Elsewhere():
        first = next_logits(load_fim(file, "tiny", threads=1, precision="int8"))
        monkeypatch.setattr(loading, "GgufFile", None)  # the file is not opened again
        assert torch.equal(next_logits(load_fim(file, "tiny", threads=1, precision="int8")), first)
    assert (first - exact).norm() / exact.norm() < 0.05
    (kept,) = (cache / "prepared").iterdir()
    assert loading.prepared_forms(file) == [kept]
    tensors = load_file(kept)
    matrices = {name: one.dtype for name, one in tensors.items() if one.ndim == 2}
    assert matrices.pop("embedding") is torch.bfloat16
    assert set(matrices.values()) == {torch.int8}
