"""What the training run reads on its machine: weights in plain order, texts as token ids, held-out prompts.

Ids are renumbered: those of the head's cut come first, then the others that the texts have, so that each fits 16 bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import msgspec
import torch
from safetensors.torch import load, save
from torch import Tensor

from lacuna_model.network.config import ModelConfig
from lacuna_model.tokenizer import FimTokens
from training.base import Base, dense
from training.feeding import FILL_TOKENS, LEAST_TOKENS, PREFIX_TOKENS, SUFFIX_TOKENS, Sample, prompt

WEIGHT = "weight."
MAX_IDS = 1 << 16
# More tokens than a prompt has.
WINDOW = PREFIX_TOKENS[1] + SUFFIX_TOKENS[1] + FILL_TOKENS[1]


class About(msgspec.Struct):
    """The model's config, its format tokens renumbered, and the ids of all of its tokens before that."""

    config: ModelConfig
    fim: FimTokens


@dataclass
class Pack:
    """``weights`` in plain order; ``texts`` and, by name, ``prompts`` with a teacher's tokens where there are any.

    ``row`` are the ids [n] of a text and the base's logits [W] after it, computed where the pack was made.
    """

    about: About
    weights: dict[str, Tensor]
    texts: list[Tensor]
    prompts: dict[str, list[Sample]]
    row: tuple[Tensor, Tensor]

    def base(self, device: torch.device, dtype: torch.dtype) -> Base:
        return Base(self.about.config, dense(self.weights, self.about.config, device, dtype))

    def samples(self, seed: int) -> Iterator[Sample]:
        """Prompts from all texts without end; a text has as many as it is long."""
        rng, fim = Random(seed), self.about.fim
        texts = [text.tolist() for text in self.texts if len(text) > LEAST_TOKENS]
        weights = torch.tensor([len(text) for text in texts]).cumsum(0).tolist()
        while True:
            (text,) = rng.choices(texts, cum_weights=weights)
            first = rng.randrange(max(len(text) - WINDOW, 1))
            yield Sample(prompt(text[first : first + 2 * WINDOW], fim, rng))


def to_bytes(pack: Pack) -> bytes:
    tensors = {WEIGHT + name: one.half() if one.dtype is torch.float32 else one for name, one in pack.weights.items()}
    tensors |= _listed("texts", pack.texts, narrow=True)
    for name, samples in pack.prompts.items():
        tensors |= _listed(f"prompts.{name}", [torch.tensor(one.ids) for one in samples], narrow=True)
        if samples and samples[0].greedy is not None:
            tensors |= _listed(f"greedy.{name}", [torch.tensor(one.greedy) for one in samples], narrow=False)
    tensors |= {"row.ids": pack.row[0].int(), "row.logits": pack.row[1].half()}
    return save(tensors, metadata={"about": msgspec.json.encode(pack.about).decode()})


def from_bytes(blob: bytes) -> Pack:
    tensors = load(blob)
    header = msgspec.json.decode(blob[8 : 8 + int.from_bytes(blob[:8], "little")])
    about = msgspec.json.decode(header["__metadata__"]["about"], type=About)
    prompts = {}
    named = [key for key in tensors if key.startswith("prompts.") and key.endswith(".lengths")]
    for name in [key.removeprefix("prompts.").removesuffix(".lengths") for key in named]:
        ids = _unlisted(f"prompts.{name}", tensors)
        said = _unlisted(f"greedy.{name}", tensors) if f"greedy.{name}.lengths" in tensors else [None] * len(ids)
        prompts[name] = [Sample(one, other) for one, other in zip(ids, said, strict=True)]
    weights = {name.removeprefix(WEIGHT): one for name, one in tensors.items() if name.startswith(WEIGHT)}
    row = (tensors["row.ids"].long(), tensors["row.logits"].float())
    return Pack(about, weights, _unlisted("texts", tensors), prompts, row)


def _listed(name: str, parts: Sequence[Tensor], *, narrow: bool) -> dict[str, Tensor]:
    lengths = torch.tensor([len(part) for part in parts], dtype=torch.int32)
    whole = torch.cat(list(parts)) if parts else torch.empty(0, dtype=torch.long)
    # 16-bit ids as signed ones with the same bits.
    kept = torch.where(whole >= 1 << 15, whole - MAX_IDS, whole).short() if narrow else whole.int()
    return {name: kept, f"{name}.lengths": lengths}


def _unlisted(name: str, tensors: dict[str, Tensor]) -> list[Tensor]:
    whole = tensors[name].int()
    whole = whole % MAX_IDS if tensors[name].dtype is torch.int16 else whole
    return list(whole.split(tensors[f"{name}.lengths"].tolist()))
