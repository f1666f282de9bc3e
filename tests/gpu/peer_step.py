"""The step that times greedy generation by transformers in the shapes of the models."""

import time

import torch
from tests.gpu.harness import Place, Report
from tests.gpu.shapes import BANDWIDTH, CONTEXT, SHAPES, TINY, num_bytes

from lacuna_model.network.config import ModelConfig


def peer(place: Place, report: Report) -> None:
    """Tokens a second of each shape at each batch size, with random weights."""
    import transformers

    report.add("transformers", transformers.__version__)
    for name, config in {"tiny": TINY}.items() if place.pretend else SHAPES.items():
        report.add(f"{name} floor tokens_s", BANDWIDTH / num_bytes(config))
        model = made(place, config)
        for batch in (1,) if place.pretend else (1, 8, 32):
            tokens_s, first = speed(place, model, config, batch)
            report.add(f"{name} batch {batch} tokens_s", tokens_s, "15" if batch == 1 else "")
            report.add(f"{name} batch {batch} first token ms", first)
        del model


def made(place: Place, config: ModelConfig) -> "torch.nn.Module":
    """A model of transformers in bfloat16."""
    import transformers

    shape = transformers.Qwen2Config(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        num_key_value_heads=config.num_kv_heads,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with place.device:
            return transformers.Qwen2ForCausalLM(shape).eval()
    finally:
        torch.set_default_dtype(before)


def speed(place: Place, model: "torch.nn.Module", config: ModelConfig, batch: int) -> tuple[float, float]:
    """Tokens a second after the first one, and the milliseconds to that."""
    context, most = (20, 3) if place.pretend else (CONTEXT, 25)
    ids = torch.randint(5, config.vocab_size, (batch, context), device=place.device)

    def generate(count: int) -> float:
        place.sync()
        began = time.perf_counter()
        with torch.inference_mode():
            model.generate(  # type: ignore[operator]  # of transformers
                ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, min_new_tokens=count, do_sample=False
            )
        place.sync()
        return time.perf_counter() - began

    generate(2)
    first, whole = generate(1), generate(most)
    return batch * (most - 1) / max(whole - first, 1e-9), first * 1e3
