"""The weights of a GGUF file are those of the model that was written, or it is refused in one line."""

from pathlib import Path
from typing import Any

import gguf as gguf_package
import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model import gguf_files, tiny
from tests.model.network.test_transformer import FAMILIES, logits_of, reference_model

from lacuna_model.core.errors import WeightsError
from lacuna_model.loading.weights import GgufFile
from lacuna_model.network.assembly import build_transformer, fuse


@pytest.fixture
def file(tmp_path: Path) -> GgufFile:
    return GgufFile(gguf_files.write(tmp_path / "tiny.gguf"))


# Each case: architecture, family of the reference model, changes to the config.
SHAPES: dict[str, tuple[str, str, dict[str, Any]]] = {
    **{family: (family.partition("-")[0], family, changes) for family, (_, _, changes) in FAMILIES.items()},
    "llama-biases": ("llama", "llama", {"attention_bias": True}),
    "llama-scaled": ("llama", "llama", {"rope_scale": 4.0}),
    "qwen2-untied": ("qwen2", "qwen2", {"attention_bias": True, "tie_embeddings": False}),
    "qwen3-untied": ("qwen3", "qwen3", {"qk_norm": True, "tie_embeddings": False}),
}


# Also head sizes that do not follow from the hidden size.
@pytest.mark.parametrize("head_dim", [8, 64, 128])
@pytest.mark.parametrize("shape", SHAPES)
def test_logits_equal_those_of_transformers(tmp_path: Path, shape: str, head_dim: int) -> None:
    architecture, family, changes = SHAPES[shape]
    config = msgspec.structs.replace(tiny.CONFIG, head_dim=head_dim, **changes)
    state, fields = tiny.state(config), {}
    if shape == "llama-biases":  # every linear has one, as in Granite's code models
        state |= {f"{name}.bias": torch.linspace(-1, 1, len(state[name])) for name in state if "proj" in name}
        state = {name: tensor for name, tensor in state.items() if not name.endswith(".bias.bias")}
    if shape == "llama-scaled":
        fields = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    path = tmp_path / "tiny.gguf"
    file = GgufFile(gguf_files.write(path, architecture=architecture, config=config, state=state, fields=fields))
    ids = torch.randint(config.vocab_size, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    with torch.inference_mode():
        expected = reference_model(family, config, state)(torch.tensor([ids])).logits[0]
    read = file.config()
    assert (read.attention_bias, read.qk_norm) == (config.attention_bias, config.qk_norm)
    got = logits_of(build_transformer(read, fuse(file.state(), read)), ids)
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q8_0", "BF16", "F16"])
def test_quantised_weights_are_close_to_the_original_ones(tmp_path: Path, kind: str) -> None:
    config = msgspec.structs.replace(tiny.CONFIG, hidden_size=64, intermediate_size=96, num_heads=8, head_dim=8)
    path, quantised = tmp_path / "tiny.gguf", gguf_package.GGMLQuantizationType[kind]
    gguf_files.write(path, config=config, quantised=quantised)
    got, expected = GgufFile(path).state(), tiny.state(config)
    for name, tensor in expected.items():
        loss = (got[name] - tensor).norm() / tensor.norm()
        assert loss < (0.12 if kind.startswith("Q") else 0.005)
        assert name.endswith("norm") == (loss == 0)


def test_a_file_cut_anywhere_is_refused_in_one_line(tmp_path: Path) -> None:
    whole = gguf_files.write(tmp_path / "tiny.gguf").read_bytes()

    @settings(deadline=None, max_examples=200)
    @given(st.integers(0, len(whole) - 1) | st.integers(0, 40_000))
    def check(length: int) -> None:
        (tmp_path / "cut.gguf").write_bytes(whole[:length])
        with pytest.raises(WeightsError, match=r"cut\.gguf .*is cut short") as caught:
            GgufFile(tmp_path / "cut.gguf")
        assert "\n" not in str(caught.value)

    check()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "architecture": ({"architecture": "gpt2"}, r"holds a 'gpt2' model.* of llama, qwen2, qwen3"),
    "lacking": ({"without": "blk.1.ffn_up.weight"}, r"lacks the tensor blk\.1\.ffn_up\.weight"),
    "lacking-field": ({"fields": {"llama.block_count": None}}, r"lacks the metadata field 'llama\.block_count'"),
    "many-numbers": ({"fields": {"llama.attention.head_count": [6, 6, 6]}},
      r"no single number in the metadata field 'llama\.attention\.head_count'"),
    "experts": ({"also": {"blk.0.ffn_gate_inp.weight": torch.ones(2, 48)}},
      r"holds the tensor blk\.0\.ffn_gate_inp\.weight, which this loader does not know"),
    "frequencies": ({"also": {"rope_freqs.weight": torch.ones(4)}}, r"holds the tensor rope_freqs\.weight"),
    "scaling": ({"fields": {"llama.rope.scaling.type": "yarn"}}, r"scales its rotary positions by 'yarn'"),
    "half-turned": ({"fields": {"llama.rope.dimension_count": 4}}, r"attention of a shape that is not supported"),
    "part": ({"fields": {"split.count": 3}}, r"one of several parts .*llama-gguf-split --merge"),
    "shape": ({"fields": {"llama.feed_forward_length": 100}}, r"ffn_gate\.weight has shape \[96, 48\], expected \[100"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_the_loader_does_not_support_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    options, message = REFUSED[case]
    with pytest.raises(WeightsError, match=message) as caught:
        GgufFile(gguf_files.write(tmp_path / "tiny.gguf", **options)).state()
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "tiny.gguf") in str(caught.value)


def test_an_unknown_quantisation_is_refused_with_an_error_that_names_it(tmp_path: Path) -> None:
    path = gguf_files.write(tmp_path / "tiny.gguf", also={"extra": torch.zeros(4, dtype=torch.int8)})
    with pytest.raises(WeightsError, match=r"quantised as I8, which is not supported"):
        GgufFile(path)
