"""A diffusion model that is ready to run."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from lacuna_model.decode.sampling import only
from lacuna_model.diffusion.marginals import Marginals, Sampling, summary
from lacuna_model.loading.chat import ChatTemplate, read_chat_template
from lacuna_model.loading.families import Diffusion
from lacuna_model.network.config import ModelConfig
from lacuna_model.network.transformer import Transformer
from lacuna_model.tokens.prefixes import PrefixTable
from lacuna_model.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class LoadedDiffusion:
    """A diffusion model: how it is read (``how``), and its parts. Keys and values are kept in ``cache_dtype``."""

    name: str
    how: Diffusion
    config: ModelConfig
    tokenizer: Tokenizer
    transformer: Transformer
    prefixes: PrefixTable
    cache_dtype: torch.dtype
    path: Path

    @cached_property
    def chat(self) -> ChatTemplate | None:
        """The model's own chat template, read when a chat first needs it; None where it has none."""
        return read_chat_template(self.path, self.tokenizer)

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self.transformer.final_norm.device

    @cached_property
    def _specials(self) -> Tensor:
        """The special tokens, True in a row of the vocabulary. [V]"""
        found = torch.zeros(self.config.vocab_size, dtype=torch.bool)
        found[sorted(self.tokenizer.special_ids)] = True
        return found.to(self.device)

    def seen(
        self, logits: Tensor, allowed: tuple[int, ...], fixed: int, sampling: Sampling, prefix: bytes = b""
    ) -> Marginals:
        """The marginals of a gap's slots, from their ``logits`` [R, V], which are overwritten.

        Special tokens are ruled out, but the ``allowed`` ones after the first ``fixed`` slots. The first slot begins
        with ``prefix``.
        """
        ruled = self._specials.expand(len(logits), -1).clone()
        for token in allowed:
            ruled[fixed:, token] = False
        if prefix and len(logits):
            only(logits[0], self.prefixes.starting_with(prefix))
        return summary(logits, ruled, sampling)
