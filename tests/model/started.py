"""A start as a user makes it, on a pretended GPU: the registry's models have random weights and all their tokens.

Nothing is set but the device that torch would find. Kernels for GPUs are interpreted, or are their torch references;
a recorded graph is a repeated call.
"""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
import torch
from msgspec.structs import replace
from tests.model import gguf_files, tiny, tiny_masks
from tests.model.elsewhere import ELSEWHERE, placed
from tests.model.fim import tiny_fim
from torch import Tensor

from lacuna_kernels import gpu, reference
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.fim import loading, measuring
from lacuna_model.fim.loading import LoadedFim, for_gpu
from lacuna_model.hub import atomic, models
from lacuna_model.loading import rows_file
from lacuna_model.loading.chat import ChatTemplate
from lacuna_model.network.assembly import build_transformer, fuse
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import Transformer
from lacuna_model.tokenizer import Tokenizer, Vocabulary

from .loading.test_chat import SPECIALS as NAMED
from .loading.test_chat import TEMPLATE

# Of Qwen2.5-Coder: the outputs of its head, its first special token, and those of the names, by their distance to it.
VOCABULARY_SIZE, FIRST_SPECIAL = 151_936, 151_643
SPECIALS = {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2, "<|fim_prefix|>": 16, "<|fim_middle|>": 17}
SPECIALS |= {"<|fim_suffix|>": 18, "<|repo_name|>": 20, "<|file_sep|>": 21}
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "num_kv_heads": 1, "head_dim": 16}
TINY = replace(tiny_fim.CONFIG, num_layers=1, vocab_size=VOCABULARY_SIZE, **SIZES)
SMALL = replace(TINY, hidden_size=16, intermediate_size=24, head_dim=8)
# A file of it has whole blocks of 32 weights.
LEAST = replace(TINY, num_layers=1, intermediate_size=64)
# The interpreter multiplies with so many outputs at most.
LARGEST = 4096


def vocabulary() -> Vocabulary:
    """The tiny vocabulary, filled up, with the special tokens where Qwen2.5-Coder has them."""
    own = tiny.VOCABULARY.tokens[len(tiny.SPECIALS) :]
    tokens = [*own, *(f"zq{number:x}" for number in range(VOCABULARY_SIZE - len(own)))]
    places = {name: FIRST_SPECIAL + place for name, place in SPECIALS.items()}
    for name, place in places.items():
        tokens[place] = name
    ids = frozenset(places.values())
    return Vocabulary(tuple(tokens), tiny.VOCABULARY.merges, special_ids=ids, eog_id=places["<|im_end|>"])


def fields(words: Vocabulary) -> dict[str, object]:
    """Metadata of a file that has the vocabulary."""
    return {
        "tokenizer.chat_template": TEMPLATE,
        "tokenizer.ggml.eos_token_id": words.eog_id,
        "tokenizer.ggml.bos_token_id": FIRST_SPECIAL + SPECIALS["<|endoftext|>"],
    }


def registry(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Put the two models that are for any machine into a cache in a folder, with mask rows for the small one."""
    patch.setenv(models.CACHE_VARIABLE, str(folder))
    words, infos = vocabulary(), list[models.ModelInfo]()
    for info, config, seed in zip(models.MODELS[:2], (SMALL, TINY), (1, 0), strict=True):
        file = models.location(info)
        file.parent.mkdir(parents=True)
        gguf_files.write(
            file,
            architecture="qwen2",
            config=config,
            vocabulary=words,
            state=tiny.state(config, seed),
            quantised=gguf.GGMLQuantizationType.F16,
            fields=fields(words),
        )
        sizes = {"size": file.stat().st_size, "parameters": config.num_weights}
        infos.append(dataclasses.replace(info, sha256=atomic.remembered(file), **sizes))
    patch.setattr(models, "MODELS", tuple(infos))
    masks = tiny_masks.write(folder / "masks.safetensors", SMALL)
    small = models.SMALL_MODEL
    patch.setattr(rows_file, "shipped", lambda name, kind: masks if (name, kind) == (small, "masks") else None)


class Recorder:
    """Takes launches as a graph would, and repeats them; ``on_record`` is called for each recording."""

    def __init__(self, on_record: Callable[[], None] = lambda: None) -> None:
        self.count = 0
        self._on_record = on_record

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        self.count += 1
        self._on_record()
        return run


def find(patch: pytest.MonkeyPatch) -> None:
    """Let torch find the pretended device; our kernels are not for it, as for MPS."""
    patch.setattr(loading, "choose_device", lambda wanted: ELSEWHERE)


def pretend(patch: pytest.MonkeyPatch, *, triton: bool = False, recorder: Recorder | None = None) -> Recorder:
    """Let torch find the pretended device, with our kernels for GPUs, or without Triton on their torch references.

    Triton is interpreted, but for products and summaries of whole vocabularies, which would take minutes.
    """
    recorder = recorder or Recorder()
    find(patch)
    patch.setattr(gpu, "runs_on", lambda device: device == ELSEWHERE)
    patch.setattr(sys.modules["lacuna_kernels.operations"], "_multiplies", lambda device, dtype: False)
    patch.setattr("lacuna_model.network.transformer.cuda_graph", recorder)
    patch.setattr(gpu, "triton_failure", lambda: "" if triton else "pretended")
    if not triton:
        return recorder
    from lacuna_kernels.gpu import product, unmask

    def multiplied(x: Tensor, weight: Tensor, scale: Tensor | None = None) -> Tensor:
        return reference.product(x, weight, scale)[None] if len(weight) > LARGEST else real(x, weight, scale)

    real = product.product
    patch.setattr("lacuna_model.network.gpu_layers.LEAST_LENGTH", 64)
    patch.setattr(measuring, "USUAL_ROWS", measuring.PASS_ROWS)
    patch.setattr(product, "product", multiplied)
    patch.setattr(unmask, "unmask", reference.unmask)
    return recorder


def loaded(
    device: torch.device, dtype: torch.dtype = torch.float32, seed: int = 0, config: ModelConfig = tiny_fim.CONFIG
) -> LoadedFim:
    """The tiny model of one seed on ``device``, as the loader would build it; every draft pays."""
    state, tokenizer = tiny.state(config, seed), Tokenizer(tiny_fim.VOCABULARY)
    if dtype is torch.bfloat16:
        tensors = dict(for_gpu(state, config))
        tensors["embedding"] = tensors["head"]
    else:
        tensors = fuse(state, config)
    tensors = placed(tensors) if device == ELSEWHERE else {name: one.to(device) for name, one in tensors.items()}
    transformer, prefixes = build_transformer(config, tensors), PrefixTable(tokenizer, device)
    found = LoadedFim("tiny", config, tokenizer, transformer, prefixes, dtype, costs=tiny_fim.Paying())
    vars(found)["chat"] = ChatTemplate(TEMPLATE, NAMED)
    return found


def least(kept: torch.dtype = torch.bfloat16) -> LoadedFim:
    """A model of one layer with few tokens, so that interpreted passes are short."""
    config = replace(SMALL, vocab_size=tiny_fim.CONFIG.vocab_size)
    return dataclasses.replace(loaded(ELSEWHERE, torch.bfloat16, config=config), cache_dtype=kept)


def layers(transformer: object) -> Transformer:
    assert isinstance(transformer, Transformer)
    return transformer
