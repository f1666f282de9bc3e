import numpy as np
import pytest
import torch

from lacuna_model.assembly import build_transformer, fuse
from lacuna_model.config import ModelConfig
from lacuna_model.errors import RequestError
from lacuna_model.evaluate.base_stream import BaseStream
from lacuna_model.transformer import Transformer

CONFIG = ModelConfig(
    num_layers=2,
    hidden_size=32,
    intermediate_size=48,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    vocab_size=50,
    rope_theta=10_000.0,
    max_positions=64,
)


@pytest.fixture(scope="module")
def transformer() -> Transformer:
    generator = torch.Generator().manual_seed(0)

    def weight(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator) * 0.2

    state = {"embedding": weight(50, 32), "final_norm": torch.ones(32)}
    for i in range(CONFIG.num_layers):
        state |= {f"layers.{i}.{name}": torch.ones(32) for name in ("attn_norm", "mlp_norm")}
        shapes = {"q_proj": (32, 32), "k_proj": (16, 32), "v_proj": (16, 32), "o_proj": (32, 32)}
        shapes |= {"gate_proj": (48, 32), "up_proj": (48, 32), "down_proj": (32, 48)}
        state |= {f"layers.{i}.{name}": weight(*shape) for name, shape in shapes.items()}
    return build_transformer(CONFIG, fuse(state, CONFIG))


def test_appending_equals_encoding_at_once(transformer: Transformer) -> None:
    tokens = [0, 5, 7, 3, 9, 9, 2, 41, 17]
    whole, grown = BaseStream(transformer), BaseStream(transformer, chunk=3)
    whole.reset(tokens)
    grown.reset(tokens[:4])
    for token in tokens[4:]:
        grown.append(token)
    np.testing.assert_allclose(grown.logits(), whole.logits(), atol=1e-5)


def test_a_new_prompt_reuses_what_it_shares_and_forgets_the_rest(transformer: Transformer) -> None:
    stream, fresh = BaseStream(transformer), BaseStream(transformer)
    stream.reset([0, 1, 2, 3, 4, 5])
    encoded: list[int] = []
    encode = stream._encode
    stream._encode = lambda tokens: (encoded.append(len(tokens)), encode(tokens))[1]  # type: ignore[method-assign]
    stream.reset([0, 1, 2, 9, 8])
    assert encoded == [2]
    stream.reset([0, 1, 2])
    assert encoded == [2, 1]  # the last token again, for its logits
    fresh.reset([0, 1, 2])
    np.testing.assert_allclose(stream.logits(), fresh.logits(), atol=1e-5)


def test_too_many_tokens_and_no_prompt_are_refused(transformer: Transformer) -> None:
    stream = BaseStream(transformer, capacity=4)
    with pytest.raises(RequestError, match="prompt"):
        stream.logits()
    stream.reset([0, 1, 2, 3])
    with pytest.raises(RequestError, match="exceeds"):
        stream.append(4)
