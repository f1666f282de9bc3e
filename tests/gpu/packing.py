"""Makes the pack of the training run, here: needs the model's file, the corpus, and all of the project's packages."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import torch
from tests.gpu.packed import MAX_IDS, About, Pack
from torch import Tensor

from lacuna_model.fim.loading import FREQUENT_TOKENS
from lacuna_model.loading.prepared import Preparation
from lacuna_model.tokenizer import FimTokens, Tokenizer
from training import masks
from training.feeding import LEAST_TOKENS, Sample, format_tokens
from training.stored import texts

# Of a text, so that many are in the pack.
MAX_TOKENS = 3000
HELD_OUT = 96
# The corpus is used up where so many texts in turn have been seen before.
USED_UP = 20_000
ROW = "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total /"


def make(about: Preparation, weights: dict[str, Tensor], corpus: Path, *, tokens: int, taught: dict[str, Path]) -> Pack:
    """A pack of so many tokens of texts; ``taught`` are files of a teacher's prompts, by the names they get."""
    tokenizer = Tokenizer(about.vocabulary)
    fim = tokenizer.fim
    assert fim is not None
    found = list(_texts(corpus, tokenizer, tokens))
    held = list(itertools.islice(masks.prompts(tokenizer, fim, texts(corpus, "held_out", 1), 1), HELD_OUT))
    lists = {"held_out": [Sample(ids) for ids in held]}
    lists |= {name: masks.written(path) for name, path in taught.items()}
    row = tokenizer.encode(ROW)
    asked = [one.ids for samples in lists.values() for one in samples]
    numbers = _numbers(about.config.vocab_size, [format_tokens(fim), row, *asked], found)
    weights = dict(weights)
    ids = (numbers >= 0).nonzero()[:, 0]
    ids = ids[numbers[ids].argsort()]
    config = msgspec.structs.replace(about.config, vocab_size=len(ids), tie_embeddings=False)
    for name in ("embedding", "embedding.scale", "embedding.blocks"):
        if name in weights:
            weights[name] = weights[name][ids]
    pack = Pack(
        About(config, _renumbered(fim, numbers)),
        weights,
        list(_split(found, numbers)),
        {name: [_moved(one, numbers) for one in samples] for name, samples in lists.items()},
        (numbers[torch.tensor(row)], torch.empty(0)),
    )
    read = pack.base(torch.device("cpu"), torch.float32)
    pack.row = (pack.row[0], read.read(pack.row[0][None]).states[0, -1] @ read.head.T)
    return pack


def _texts(corpus: Path, tokenizer: Tokenizer, tokens: int) -> Iterator[list[int]]:
    seen, count, again = set[int](), 0, 0
    for text in texts(corpus, "train", 11):
        if hash(text) in seen:
            again += 1
            if again > USED_UP:
                return
            continue
        seen.add(hash(text))
        again = 0
        ids = tokenizer.encode(text)[:MAX_TOKENS]
        count += len(ids)
        yield ids
        if count >= tokens:
            return


def _numbers(vocabulary: int, first: Iterable[list[int]], others: Iterable[list[int]]) -> Tensor:
    """The new number of every token, -1 for those that have none."""
    numbers = torch.full((vocabulary,), -1)
    frequent = min(FREQUENT_TOKENS, vocabulary)
    numbers[:frequent] = torch.arange(frequent)
    counts = Counter[int]()
    for ids in others:
        counts.update(ids)
    order = [*itertools.chain.from_iterable(first), *(token for token, _ in counts.most_common())]
    free = frequent
    for token in order:
        if free < MAX_IDS and numbers[token] < 0:
            numbers[token] = free
            free += 1
    return numbers


def _split(found: Iterable[list[int]], numbers: Tensor) -> Iterator[Tensor]:
    """Texts renumbered, and ended where a token has no number."""
    for ids in found:
        moved = numbers[torch.tensor(ids)]
        missing = (moved < 0).nonzero()[:, 0].tolist()
        for first, last in itertools.pairwise([-1, *missing, len(ids)]):
            if last - first - 1 > LEAST_TOKENS:
                yield moved[first + 1 : last]


def _moved(one: Sample, numbers: Tensor) -> Sample:
    """A prompt renumbered; what a teacher says in tokens without a number is none of the base's."""
    ids = numbers[torch.tensor(one.ids)].tolist()
    if one.greedy is None:
        return Sample(ids)
    said = numbers[torch.tensor(one.greedy)]
    return Sample(ids, torch.where(said < 0, MAX_IDS, said).tolist())


def _renumbered(fim: FimTokens, numbers: Tensor) -> FimTokens:
    old = torch.tensor([fim.prefix, fim.suffix, fim.middle, *fim.start])
    prefix, suffix, middle, *start = numbers[old].tolist()
    return FimTokens(prefix, suffix, middle, frozenset(), start=tuple(start))
