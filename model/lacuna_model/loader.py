"""Loads a model: base weights, adapter, tokenizer, in the precision the device is fast in."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lacuna_model import models
from lacuna_model.adapter import load_adapter, merge_adapter
from lacuna_model.assembly import build_transformer, linear_for
from lacuna_model.config import ModelConfig
from lacuna_model.params import Snippet
from lacuna_model.prefixes import PrefixTable
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.transformer import Transformer
from lacuna_model.weights import GgufFile


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """Both sides of a model, ready to run."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    base: Transformer
    canvas: Transformer
    mask_embedding: Tensor
    prefixes: PrefixTable
    adapter_notes: dict[str, str]
    cache_dtype: torch.dtype = torch.float32

    def join_snippets(self, snippets: Sequence[Snippet]) -> str:
        """Other files' text as one stream."""
        return "".join(f"# {snippet.path}\n{snippet.text}\n" for snippet in snippets)


def load_model(name: str, *, threads: int = 0, path: Path | None = None, precision: str = "") -> LoadedModel:
    """Load ``name`` from the cache, or the GGUF at ``path``.

    ``threads`` 0 leaves the choice to :func:`choose_threads`; ``precision`` "" takes 8 bit where the CPU has the
    instructions and float32 elsewhere.
    """
    torch.set_num_threads(threads or choose_threads())
    info = models.find(name)
    file = GgufFile(path or models.path(info))
    config = file.config()
    state = file.state()
    tensors, notes = load_adapter(models.adapter_path(info))
    make_linear = linear_for(precision or default_precision())
    base = build_transformer(config, state, make_linear)
    # The head is not adapted: both sides share it.
    canvas = build_transformer(config, merge_adapter(config, state, tensors), make_linear, head=base.head)
    tokenizer = Tokenizer(file.vocabulary())
    return LoadedModel(
        name, config, tokenizer, base, canvas, tensors["mask_embedding"], PrefixTable(tokenizer), notes
    )


def default_precision() -> str:
    """``int8`` on CPUs whose 8-bit products are fast (AVX2 and up), else ``float32``."""
    return "int8" if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512") else "float32"


def choose_threads() -> int:
    """Threads for a forward pass: the cores this process may use, at most eight; a small model gains nothing beyond."""
    return max(1, min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
