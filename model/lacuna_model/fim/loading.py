"""Builds a fill-in-the-middle model from a GGUF file, in the precision the device is fast in."""

from dataclasses import dataclass

import torch

from lacuna_model.config import ModelConfig
from lacuna_model.fim.prompt import FimTokens
from lacuna_model.prefixes import PrefixTable
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.transformer import Transformer


@dataclass(frozen=True, slots=True)
class LoadedFim:
    """A fill-in-the-middle model, ready to run; keys and values are kept in ``cache_dtype``."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer
    transformer: Transformer
    prefixes: PrefixTable
    fim: FimTokens
    cache_dtype: torch.dtype = torch.float32
