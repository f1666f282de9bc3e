"""The tiny random model with the tokens of a fill-in-the-middle format."""

from collections.abc import Sequence
from dataclasses import replace as replace_field

import torch
from msgspec.structs import replace
from tests.model import tiny
from torch import Tensor

from lacuna_kernels.native import NativeKernels
from lacuna_model.core.context import Layout, lay_out
from lacuna_model.decode.sampling import PrefixTable
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.network.assembly import build_transformer, fuse
from lacuna_model.tokenizer import FimTokens, Tokenizer

NAMES = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>")
FIRST = len(tiny.VOCABULARY.tokens)
FIM = FimTokens(
    prefix=FIRST,
    suffix=FIRST + 1,
    middle=FIRST + 2,
    ends=frozenset({0, 2, *range(FIRST, FIRST + 5)}),
    repo=FIRST + 3,
    file_sep=FIRST + 4,
)
VOCABULARY = replace(
    tiny.VOCABULARY,
    tokens=(*tiny.VOCABULARY.tokens, *NAMES),
    special_ids=tiny.VOCABULARY.special_ids | FIM.ends,
    fim=FIM,
)
CONFIG = replace(tiny.CONFIG, vocab_size=len(VOCABULARY.tokens), attention_bias=True)
# The same where all runs in C: the kernels multiply by whole blocks of outputs, and of heads.
UNUSED = tuple(f"<|unused{number}|>" for number in range(-len(VOCABULARY.tokens) % 32))
IN_C_VOCABULARY = replace(
    VOCABULARY,
    tokens=(*VOCABULARY.tokens, *UNUSED),
    special_ids=VOCABULARY.special_ids | {len(VOCABULARY.tokens) + number for number in range(len(UNUSED))},
)
SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_heads": 2, "num_kv_heads": 1, "head_dim": 32}
IN_C = replace(CONFIG, num_layers=2, vocab_size=len(IN_C_VOCABULARY.tokens), **SIZES)


class Paying(PassCosts):
    """Every draft pays, however long passes take here at the moment."""

    def worth(self, rows: int, probability: float) -> bool:
        return True


class Free(Paying):
    """No pass takes any time, so that all that can be drafted is, and the whole context is read for it."""

    def ms(self, rows: int, masks: int = 0) -> float:
        return 0.0


def loaded(seed: int = 0) -> LoadedFim:
    """The model of one seed, which takes every draft: a pass of it takes no time that could be measured."""
    tokenizer = Tokenizer(VOCABULARY)
    transformer = build_transformer(CONFIG, fuse(tiny.state(CONFIG, seed), CONFIG))
    return LoadedFim("tiny", CONFIG, tokenizer, transformer, PrefixTable(tokenizer), costs=Paying())


def loaded_in_c(kernels: NativeKernels, seed: int = 0) -> LoadedFim:
    """A model of one seed that runs in the kernels in C."""
    tokenizer = Tokenizer(IN_C_VOCABULARY)
    transformer = build_transformer(IN_C, tiny.quantized(fuse(tiny.state(IN_C, seed), IN_C)), kernels=kernels)
    assert transformer.is_native
    return LoadedFim("tiny", IN_C, tokenizer, transformer, PrefixTable(tokenizer), torch.bfloat16)


def laid_out(model: LoadedFim, *segments: str) -> Layout:
    return lay_out(segments, model.tokenizer, prompt_head(model.fim, model.tokenizer, (), "a.py"))


def unhealed(layout: Layout) -> Layout:
    """The layout without healed text, because the reference does not heal."""
    return replace_field(layout, gaps=tuple(replace_field(gap, prefix=b"") for gap in layout.gaps))


@torch.no_grad()
def plain_logits(model: LoadedFim, ids: Sequence[int]) -> Tensor:
    """Logits [n, V] of one causal pass over a whole prompt."""
    network, rows = model.transformer, len(ids)
    causal = torch.ones((rows, rows), dtype=torch.bool).tril()
    hidden = tiny.hidden(network, network.embed(torch.tensor([ids])), torch.arange(rows), causal)
    return network.head(hidden)[0].clone()


def greedy(model: LoadedFim, prompt: Sequence[int], most: int) -> list[int]:
    """The tokens that the model writes after a prompt, greedily left to right, up to its end token."""
    tokens: list[int] = []
    while len(tokens) < most:
        row = plain_logits(model, [*prompt, *tokens])[-1]
        end = row[sorted(model.fim.ends)].logsumexp(0)
        row[sorted(model.tokenizer.special_ids)] = -torch.inf
        row[model.tokenizer.eog_id] = end
        best = int(row.argmax())
        if best == model.tokenizer.eog_id:
            break
        tokens.append(best)
    return tokens
