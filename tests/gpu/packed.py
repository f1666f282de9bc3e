"""What the training run reads on its machine: weights in plain order, texts as token ids, held-out prompts.

Ids are renumbered: those of the head's cut come first, then the others that the texts have, so that each fits 16 bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
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
    tensors |= _listed("texts", pack.texts, torch.uint16)
    for name, samples in pack.prompts.items():
        tensors |= _listed(f"prompts.{name}", [torch.tensor(one.ids) for one in samples], torch.uint16)
        said = [torch.tensor(one.greedy) for one in samples if one.greedy is not None]
        tensors |= _listed(f"greedy.{name}", said, torch.int32)
    tensors |= {"row.ids": pack.row[0].int(), "row.logits": pack.row[1].half()}
    return save(tensors, metadata={"about": msgspec.json.encode(pack.about).decode()})


def from_bytes(blob: bytes) -> Pack:
    tensors = load(blob)
    header = msgspec.json.decode(blob[8 : 8 + int.from_bytes(blob[:8], "little")])
    about = msgspec.json.decode(header["__metadata__"]["about"], type=About)
    prompts = {}
    for key in [key for key in tensors if key.startswith("prompts.") and not key.endswith(".lengths")]:
        name = key.removeprefix("prompts.")
        pairs = zip_longest(_unlisted(key, tensors), _unlisted(f"greedy.{name}", tensors))
        prompts[name] = [Sample(ids, said) for ids, said in pairs]
    weights = {name.removeprefix(WEIGHT): one for name, one in tensors.items() if name.startswith(WEIGHT)}
    row = (tensors["row.ids"].long(), tensors["row.logits"].float())
    return Pack(about, weights, _unlisted("texts", tensors), prompts, row)


def _listed(name: str, parts: Sequence[Tensor], kind: torch.dtype) -> dict[str, Tensor]:
    lengths = torch.tensor([len(part) for part in parts], dtype=torch.int32)
    return {name: torch.cat([*parts, torch.empty(0, dtype=torch.long)]).to(kind), f"{name}.lengths": lengths}


def _unlisted(name: str, tensors: dict[str, Tensor]) -> list[Tensor]:
    return list(tensors[name].int().split(tensors[f"{name}.lengths"].tolist()))
