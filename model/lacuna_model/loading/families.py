"""What files call their tensors, the families of checkpoints, and the models that rewrite lines for next edits."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from torch import Tensor

from lacuna_kernels.quantised import FourBitWeight
from lacuna_model.core.errors import WeightsError
from lacuna_model.network.config import ModelConfig, shape_of

# The prompt in which a model rewrites lines because of the last changes.
EditFormat = Literal["sweep", "zeta"]
_NAMES: dict[EditFormat, re.Pattern[str]] = {
    "sweep": re.compile(r"sweep.*next.?edit|next.?edit.*sweep", re.IGNORECASE | re.DOTALL),
    "zeta": re.compile(r"(?:^|[^a-z])zeta[-_. ]?2[._]1(?!\d)", re.IGNORECASE),
}


def edit_format(path: Path) -> EditFormat | None:
    """The format of the next-edit model in the GGUF file or folder at ``path``, by its name; None for other models."""
    return next((known for known, pattern in _NAMES.items() if pattern.search(path.name)), None)


Length = Literal["expand", "search", "end"]
Rule = Literal["entropy", "confidence", "p2"]

# The parts of a layer by our names, with their names in Llama, Qwen2, Qwen3 and Dream.
LAYER = {
    "attn_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    **{name: f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj")},
    **{name: f"mlp.{name}" for name in ("gate_proj", "up_proj", "down_proj")},
}
OUTSIDE = {"embedding": "model.embed_tokens", "final_norm": "model.norm", "head": "lm_head"}
# The same with their names in LLaDA, whose code is based on OLMo's.
LLADA_LAYER = {
    "attn_norm": "attn_norm",
    "mlp_norm": "ff_norm",
    **{name: name for name in ("q_proj", "k_proj", "v_proj", "up_proj")},
    "o_proj": "attn_out",
    "gate_proj": "ff_proj",
    "down_proj": "ff_out",
}
LLADA_OUTSIDE = {
    "embedding": "model.transformer.wte",
    "final_norm": "model.transformer.ln_f",
    "head": "model.transformer.ff_out",
}
LLADA_KEYS = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "intermediate_size": "mlp_hidden_size",
    "vocab_size": "embedding_size",
    "max_position_embeddings": "max_sequence_length",
    "tie_word_embeddings": "weight_tying",
}
# Parts that only some models have, beside biases of projections.
OPTIONAL = ("q_norm", "k_norm")
# CAL's length bias (arXiv 2602.00476, appendix A): what the first step's confidence is at a length, whatever the text.
LENGTH_BIAS = (1.00, 1.77, 0.56, 0.06, 0.24)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a kind of file gives its tensors and the keys of its config.json."""

    prefix: str = "model.layers"
    layer: Mapping[str, str] = field(default_factory=lambda: LAYER)
    outside: Mapping[str, str] = field(default_factory=lambda: OUTSIDE)
    keys: Mapping[str, str] = field(default_factory=dict)

    def tensors(self, where: Path, config: ModelConfig, shapes: Mapping[str, Sequence[int]]) -> dict[str, str]:
        """The names by ours of the tensors in ``where``, which has tensors of these ``shapes``.

        Raises WeightsError for one that is missing, or of another shape than the ``config`` says.
        """
        names = {ours: f"{theirs}.weight" for ours, theirs in self.outside.items()}
        if config.tie_embeddings:
            del names["head"]
        for i in range(config.num_layers):
            for ours, theirs in self.layer.items():
                own, name = f"layers.{i}.{ours}", f"{self.prefix}.{i}.{theirs}"
                if ours not in OPTIONAL or f"{name}.weight" in shapes:
                    names[own] = f"{name}.weight"
                if "proj" in ours and f"{name}.bias" in shapes:
                    names[f"{own}.bias"] = f"{name}.bias"
        for ours, theirs in names.items():
            if theirs not in shapes:
                raise WeightsError(f"{where} lacks the tensor {theirs}{'; fetch it again' if where.is_file() else ''}")
            if (found := list(shapes[theirs])) != (expected := shape_of(ours, config)):
                raise WeightsError(f"{where}: the tensor {theirs} has shape {found}, expected {expected}")
        return names


class Weights(Mapping[str, Tensor]):
    """The tensors of a file or folder under our names, each read in float32 on access; ``names`` are theirs by ours.

    Two copies of a model that fills half of a GPU would not fit.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def four_bit(self, name: str) -> FourBitWeight | None:
        """The weight as it is stored, where that is 4 bit with groups of 32; else None."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class Diffusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a diffusion model is read.

    ``block_size`` is the number of tokens of a block: each attends to those of its own block and of those before
    it; 0: every token attends to every other. ``after_prompt``: a block begins behind the prompt, and not at every
    such place of the text. ``shift``: the output at a place predicts the next one. ``mask_id`` is the token of an
    open slot; ``expand_id`` stands for two of them, ``delete_id`` for none. ``begin_id`` and ``end_id`` stand
    around the text; ``ends`` are the tokens that end a text.

    ``length`` says how the length of a fill is found: the model's tokens for ``expand`` and delete (``start`` slots at
    first), CAL's ``search`` from ``start`` with its ``bias``, or one of the ``ends`` that the model writes (``end``).

    ``rule`` orders the open slots by ``entropy`` or ``confidence``. Each pass fills the first of them, and with it
    all that are more probable than ``threshold`` (confidence) or whose entropies keep within ``bound`` (nats; below
    0: none). ``p2`` masks the least probable places of the whole gap again. Where a request draws tokens, it draws
    from the most probable ones that have the probability ``top_p`` together. ``inner`` is the size of the parts of
    a block that are filled one after another (0: the whole block at once). ``refresh``: one of so many passes reads
    the whole text, the others only the slots.
    """

    shift: bool
    mask_id: int
    block_size: int
    ends: tuple[int, ...]
    after_prompt: bool = False
    expand_id: int | None = None
    delete_id: int | None = None
    begin_id: int | None = None
    end_id: int | None = None
    length: Length = "search"
    start: Annotated[int, Meta(ge=1)] = 8
    bias: tuple[float, float, float, float, float] = LENGTH_BIAS
    rule: Rule = "entropy"
    threshold: float = 1.0
    bound: float = -1.0
    top_p: float = 0.95
    inner: int = 0
    refresh: Annotated[int, Meta(ge=1)] = 8


@dataclass(frozen=True, slots=True)
class Family:
    """One family: ``how`` has values of :class:`Diffusion`, but for those that the model's files have to say.

    ``causal``: left to right, no diffusion model. ``wrapped``: the tokenizer's tokens begin and end the text.
    """

    how: Mapping[str, Any] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    causal: bool = False
    wrapped: bool = False


def _blocks(size: int, mask_id: int, **more: Any) -> Family:
    """A family of models that fill block by block, and write the end themselves."""
    return Family(
        {"shift": False, "mask_id": mask_id, "block_size": size, "length": "end", "rule": "confidence"} | more
    )


LLADA_NAMES = Names("model.transformer.blocks", LLADA_LAYER, LLADA_OUTSIDE, LLADA_KEYS)
DREAM = Family({"shift": True, "mask_id": 151666, "block_size": 0})
DREAM_ON = Family({**DREAM.how, "length": "expand", "start": 64, "top_p": 0.9}, wrapped=True)
OPEN_DCODER = Family({"shift": True, "block_size": 0, "rule": "p2"})
A2D = Family({"shift": False, "rule": "confidence"})
# The two variants of A2D, which only a model's name tells apart.
A2D_VARIANTS = {
    "bd3lm": Family({**A2D.how, "block_size": 32, "length": "end", "after_prompt": True}),
    "mdlm": Family({**A2D.how, "block_size": 0}),
}
STABLE_DIFFCODER = _blocks(4, 5)
# By ``model_type`` of config.json. ``Dream`` with an expand token is DreamOn; plain shapes may be diffusion models.
FAMILIES = {
    "Dream": DREAM,
    "llada": Family({"shift": False, "mask_id": 126336, "block_size": 0, "rule": "confidence"}, LLADA_NAMES),
    "CoDA": Family({"shift": True, "mask_id": 151669, "block_size": 0}),
    **dict.fromkeys(("a2d-llama", "a2d-qwen2", "a2d-qwen3"), A2D),
    "Fast_dLLM_Qwen": _blocks(32, 151665, shift=True, threshold=0.9, inner=8),
    "sdar": _blocks(4, 151669, threshold=0.85),
    **dict.fromkeys(("llama", "qwen2", "qwen3"), Family(causal=True)),
}
# Models that other engines serve, as model/docs/models.md says.
ELSEWHERE = ("llada2_moe", "diffusion_gemma", "diffusiongemma")
# Seed-Coder's vocabulary, and the mask that Open-dCoder's tokenizer adds.
SEED_VOCABULARY, OPEN_DCODER_MASK = 155_136, "<M>"
