from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
import torch
import transformers
from tests.model import tiny
from torch import Tensor

from lacuna_kernels import native
from lacuna_kernels.native import NativeKernels
from lacuna_model.loading.families import LAYER
from lacuna_model.loading.weights import GgufFile
from lacuna_model.network.arena import Arena
from lacuna_model.network.assembly import build_transformer, fuse
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import Transformer
from lacuna_model.tokenizer import Tokenizer

FAMILIES = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {}),
    "llama-untied": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {"tie_embeddings": False}),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM, {"attention_bias": True, "rope_theta": 1e6}),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, {"qk_norm": True, "rms_norm_eps": 1e-6}),
}


def reference_model(family: str, config: ModelConfig, state: Mapping[str, Tensor]) -> transformers.PreTrainedModel:
    """The model of `transformers` with the weights of ``state``."""
    make_config, make_model, _ = FAMILIES[family]
    scaling: dict[str, object] = {"rope_type": "default"}
    if config.rope_scale != 1:
        scaling = {"rope_type": "linear", "factor": config.rope_scale}
    biases = any(name.endswith("down_proj.bias") for name in state)
    options = make_config(
        attention_bias=biases,
        mlp_bias=biases,
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        rms_norm_eps=config.rms_norm_eps,
        rope_parameters={**scaling, "rope_theta": config.rope_theta},
        max_position_embeddings=config.max_positions,
        tie_word_embeddings=config.tie_embeddings,
        attention_dropout=0.0,
    )
    with torch.device("meta"):
        model = make_model(options)
    named = {"model.embed_tokens.weight": state["embedding"], "model.norm.weight": state["final_norm"]}
    named["lm_head.weight"] = state["embedding" if config.tie_embeddings else "head"]
    for name, tensor in state.items():
        if name.startswith("layers."):
            _, layer, part, *bias = name.split(".")
            named[f"model.layers.{layer}.{LAYER[part]}.{'bias' if bias else 'weight'}"] = tensor
    model.load_state_dict(named, strict=True, assign=True)
    # The state holds no buffers, so they are computed again, off the meta device.
    model.model.rotary_emb = type(model.model.rotary_emb)(options)
    return model.eval()


def logits_of(model: Transformer, ids: list[int]) -> Tensor:
    mask = torch.ones((len(ids), len(ids)), dtype=torch.bool).tril()
    with torch.inference_mode():
        hidden = tiny.hidden(model, model.embed(torch.tensor([ids])), torch.arange(len(ids)), mask)
        return model.head(hidden)[0]


def test_logits_of_the_coder_equal_those_of_transformers(coder_path: Path) -> None:
    file = GgufFile(coder_path)
    config, state, tokenizer = file.config(), dict(file.state()), Tokenizer(file.vocabulary())
    fim = tokenizer.fim
    assert fim is not None
    before, truth, after = tiny.CODE.partition("value = value + x")
    ids = [fim.prefix, *tokenizer.encode(before), fim.suffix, *tokenizer.encode(after), fim.middle]
    start = len(ids) - 1
    ids += tokenizer.encode(truth)
    with torch.inference_mode():
        expected = reference_model("qwen2", config, state)(torch.tensor([ids])).logits[0]
    got = logits_of(build_transformer(config, fuse(state, config)), ids)
    torch.testing.assert_close(got, expected, atol=1e-3, rtol=1e-3)
    # The prompt format is right: the text that was cut out is likely.
    assert torch.nn.functional.cross_entropy(got[start:-1], torch.tensor(ids[start + 1 :])) < 1


NATIVE = msgspec.structs.replace(
    tiny.CONFIG, hidden_size=96, intermediate_size=160, num_heads=6, num_kv_heads=2, head_dim=32
)


def read(model: Transformer, ids: list[int], pieces: int) -> Tensor:
    """Hidden states of ``ids``, read ``pieces`` tokens in a pass. An arena keeps keys and values between passes."""
    arena, said = Arena(model.config, torch.device("cpu"), torch.bfloat16), []
    with torch.inference_mode():
        for first in range(0, len(ids), pieces):
            part = torch.tensor([ids[first : first + pieces]])
            count = first + part.shape[1]
            arena.tail = first
            mask = torch.ones((part.shape[1], count), dtype=torch.bool).tril(first)
            said.append(tiny.hidden(model, model.embed(part), torch.arange(first, count), mask, arena)[0])
    return torch.cat(said)


@pytest.fixture(scope="module", params=native.supported(), ids=lambda instructions: instructions.name)
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NativeKernels:
    return native.build(tmp_path_factory.mktemp("kernels"), 2, [request.param])


@pytest.mark.parametrize("family", ["llama", "llama-untied", "qwen2", "qwen3"])
def test_layers_in_8_bit_are_nearly_exact_in_kernels_and_without(family: str, kernels: NativeKernels) -> None:
    config = msgspec.structs.replace(NATIVE, **FAMILIES[family][2])
    fused = fuse(tiny.state(config), config)
    ids = torch.randint(config.vocab_size, (90,), generator=torch.Generator().manual_seed(0)).tolist()
    exact = read(build_transformer(config, fused), ids, 90)
    for kept, most in ((None, 0.04), (kernels, 0.06)):  # without kernels, weights in 8 bit are widened
        found = read(build_transformer(config, tiny.quantized(fused), kernels=kept), ids, 90)
        assert (found - exact).norm() / exact.norm() < most


def test_native_layers_give_the_same_bits_however_a_text_is_split_into_passes(kernels: NativeKernels) -> None:
    model = build_transformer(NATIVE, tiny.quantized(fuse(tiny.state(NATIVE), NATIVE)), kernels=kernels)
    ids = torch.randint(NATIVE.vocab_size, (60,), generator=torch.Generator().manual_seed(0)).tolist()
    whole = read(model, ids, 60)
    for pieces in (1, 7, 16):
        assert torch.equal(read(model, ids, pieces), whole)
