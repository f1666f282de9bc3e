"""The prepared form of weights in 4 bit, and of weights in another form in the same file."""

from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from safetensors.torch import load_file
from tests.model import gguf_files, tiny

from lacuna_kernels import native
from lacuna_model.fim import loading
from lacuna_model.fim.loading import LoadedFim, load_fim
from lacuna_model.network.arena import Arena

from . import tiny_fim

pytestmark = [
    pytest.mark.usefixtures("cache"),
    pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions"),
]

CONFIG = replace(
    tiny_fim.CONFIG, num_layers=2, hidden_size=256, intermediate_size=512, num_heads=4, num_kv_heads=2, head_dim=64
)
# Of the projections that are joined to one linear, only the first ones; of the down projections, only the first.
FOUR_BIT = (
    "attn_q.weight", "attn_k.weight", "attn_output.weight", "ffn_gate.weight", "ffn_up.weight", "blk.0.ffn_down",
)  # fmt: skip


@pytest.fixture(params=["qwen2", "llama"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return gguf_files.write(
        tmp_path / "tiny.gguf",
        architecture=request.param,
        config=CONFIG,
        vocabulary=tiny_fim.VOCABULARY,
        four_bit=FOUR_BIT,
    )


def states(model: LoadedFim, *, at_once: int = 40) -> torch.Tensor:
    """The hidden states of 40 tokens, read ``at_once`` tokens in a pass."""
    ids = torch.tensor([model.tokenizer.encode(tiny.CODE)[:40]])
    network, arena = model.transformer, Arena(CONFIG, torch.device("cpu"), model.cache_dtype)
    found = []
    with torch.inference_mode():
        for first in range(0, 40, at_once):
            rows = ids[:, first : first + at_once]
            last = first + rows.shape[1]
            mask = torch.ones((40, 40), dtype=torch.bool).tril()[first:last, :last]
            found.append(tiny.hidden(network, network.embed(rows), torch.arange(first, last), mask, arena)[0])
            arena.tail = last
    return torch.cat(found)


@torch.inference_mode()
def logits(model: LoadedFim) -> torch.Tensor:
    """The logits of 40 tokens, read in one pass."""
    return model.transformer.head(states(model))


def test_hidden_states_are_the_same_in_passes_of_any_size(file: Path) -> None:
    model = load_fim(file, "tiny", threads=1)
    assert model.transformer.is_native
    together = states(model)
    for rows in (1, 3, 8):
        assert torch.equal(states(model, at_once=rows), together)


def test_each_weight_is_kept_once_in_its_own_form(file: Path, cache: Path) -> None:
    load_fim(file, "tiny", threads=1)
    (kept,) = (cache / "prepared").iterdir()
    shapes = {name: tuple(tensor.shape) for name, tensor in load_file(kept).items() if tensor.dtype is torch.uint8}
    assert shapes["layers.0.qkv.blocks"] == (256 + 128, 152)
    assert shapes["layers.0.qkv"] == (128, 256)
    assert shapes["layers.0.gate_up.blocks"] == (1024, 152)
    assert shapes["layers.0.gate_up"] == (0, 256)
    assert shapes["layers.0.down.blocks"] == (256, 304)
    assert "layers.1.down.blocks" not in shapes
    assert shapes["layers.1.down"] == (256, 512)


def test_a_model_that_only_drafts_is_smaller(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tiny_fim.VOCABULARY.tokens
    more = replace(tiny_fim.VOCABULARY, tokens=(*tokens, *(f"<{n}>" for n in range(-len(tokens) % native.WIDTH))))
    config = replace(CONFIG, vocab_size=len(more.tokens))
    file = gguf_files.write(
        tmp_path / "a.gguf", architecture="qwen2", config=config, vocabulary=more, four_bit=FOUR_BIT
    )
    exact = logits(load_fim(file, "tiny", threads=1, precision="float32"))
    monkeypatch.setattr(loading, "FREQUENT_TOKENS", 64)
    drafting = load_fim(file, "tiny", threads=1, drafts=True)
    assert (logits(drafting) - exact[:, :64]).norm() / exact[:, :64].norm() < 0.15
    (kept,) = (cache / "prepared").iterdir()
    shapes = {name: tuple(tensor.shape) for name, tensor in load_file(kept).items() if tensor.dtype is torch.uint8}
    assert shapes["head"] == (64, 256)
    assert shapes["embedding"] == (config.vocab_size, 256)
    assert shapes["layers.1.down.blocks"] == (256, 304)
    assert all(shape[0] == 0 for name, shape in shapes.items() if name.endswith(("qkv", "gate_up", "down")))
    assert loading.prepared_forms(file) == [kept]
