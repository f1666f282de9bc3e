"""A tiny model that has learnt to fill gaps in lists of names whose letters follow each other.

``x = [c,d,e,f]``: what stands in a gap follows from its two ends, and so does its length. As DreamOn it has learnt
masks, the token that stands for two of them, and the one that stands for none.

``python -m tests.model.diffusion.trained`` trains it again, in a minute, and keeps its weights in float16 in
``tests/data/diffusion``.
"""

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tests.model import checkpoints, tiny
from tests.model.network.test_transformer import reference_model
from tokenizers import Tokenizer
from torch import Tensor

CONFIG = msgspec.structs.replace(
    checkpoints.CONFIG,
    num_layers=2,
    hidden_size=64,
    intermediate_size=128,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    attention_bias=True,
    rms_norm_eps=1e-6,
)
STEPS, BATCH = 1000, 64
WEIGHTS = Path(__file__).parents[2] / "data" / "diffusion" / "lists.safetensors"
MORE = "<|expand|>"
LETTERS = "abcdefghijkl"
MASK, DELETE, EXPAND = checkpoints.MASK, checkpoints.END, checkpoints.EXPAND
NOTHING = -100  # the label of a place that is not learnt
LONGEST = 5  # tokens of a gap


def names(rng: random.Random) -> list[str]:
    """The pieces of a list: names and commas."""
    count = rng.randint(5, 9)
    first = rng.randint(0, len(LETTERS) - count)
    return list(",".join(LETTERS[first : first + count]))


def gaps(rng: random.Random, pieces: Sequence[str], count: int) -> list[range]:
    """Gaps in a list, a name on both sides of each at least."""
    cuts: list[range] = []
    start = 1
    for left in range(count, 0, -1):
        size = rng.randint(1, min(LONGEST, (len(pieces) - 1 - start) // left - 1))
        begin = rng.randint(start, len(pieces) - 1 - size - 3 * (left - 1))
        cuts.append(range(begin, begin + size))
        start = begin + size + 2
        if len(pieces) - 1 - start < 3:
            break
    return cuts


def _canvas(rng: random.Random, tokens: Sequence[int], wrong: Sequence[int]) -> tuple[list[int], list[int]]:
    """The slots of a gap as a denoising model may meet them, and the labels of its masks."""
    shown = rng.choice((0.0, rng.random(), rng.random()))
    slots, labels = [], []
    merges = rng.random() < 0.4
    run: list[int] = []

    def close() -> None:
        while run:
            size = rng.randint(1, len(run)) if merges else 1
            slots.append(MASK)
            labels.append(run[0] if size == 1 else EXPAND)
            del run[:size]

    for token in tokens:
        if rng.random() < shown:
            close()
            # A token that stands there may be wrong, so that the model learns to revise.
            slots.append(rng.choice(wrong) if rng.random() < 0.06 else token)
            labels.append(token)
        else:
            run.append(token)
    close()
    if not merges and rng.random() < 0.6:
        more = rng.choice((1, 1, 2, 3, 4, 5, 6))
        slots += [MASK] * more
        labels += [DELETE] * more
    return slots, labels


class Lists:
    """Samples of the language, as token ids of a folder's tokenizer."""

    def __init__(self, folder: Path, seed: int) -> None:
        bpe = Tokenizer.from_file(str(folder / "tokenizer.json"))
        ids = {piece: bpe.token_to_id(piece) for piece in [*LETTERS, ","]}
        self._ids: dict[str, int] = ids
        self._head = bpe.encode("x = [", add_special_tokens=False).ids
        self._tail = bpe.encode("]\n", add_special_tokens=False).ids
        self._rng = random.Random(seed)

    def sample(self) -> tuple[list[int], list[int]]:
        pieces = names(self._rng)
        ids, labels = [checkpoints.START, *self._head], [NOTHING] * (1 + len(self._head))
        at, letters = 0, [*self._ids.values()]
        for gap in gaps(self._rng, pieces, self._rng.choice((1, 1, 2))):
            known = [self._ids[piece] for piece in pieces[at : gap.start]]
            slots, wanted = _canvas(self._rng, [self._ids[pieces[place]] for place in gap], letters)
            ids += [*known, *slots]
            labels += [*[NOTHING] * len(known), *wanted]
            at = gap.stop
        rest = [*(self._ids[piece] for piece in pieces[at:]), *self._tail, checkpoints.END]
        return [*ids, *rest], [*labels, *[NOTHING] * len(rest)]

    def batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids and labels [B, T], and the mask [B, 1, T, T] that hides what is behind the end of a shorter sample."""
        samples = [self.sample() for _ in range(BATCH)]
        width = max(len(tokens) for tokens, _ in samples)
        ids, labels = torch.zeros((2, BATCH, width), dtype=torch.long)
        labels.fill_(NOTHING)
        mask = torch.zeros((BATCH, 1, width, width))
        for row, (tokens, wanted) in enumerate(samples):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            labels[row, : len(tokens)] = torch.tensor(wanted)
            mask[row, :, :, len(tokens) :] = -torch.inf
        return ids, labels, mask


def train(steps: int = STEPS) -> dict[str, Tensor]:
    """Trains the model, the same on every run of one machine; returns its tensors by our names."""
    state = {name: tensor.clone() for name, tensor in tiny.state(CONFIG).items()}
    for name, tensor in state.items():
        if name in ("embedding", "head"):
            tensor *= 0.3
        elif name.endswith(".bias"):
            tensor.zero_()
    with tempfile.TemporaryDirectory() as folder:
        checkpoints.write_tokenizer(Path(folder), [MORE])
        lists = Lists(Path(folder), seed=1)
    with torch.enable_grad():
        model = reference_model("qwen2", CONFIG, state)
        optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
        for _ in range(steps):
            ids, labels, mask = lists.batch()
            logits = model(ids, attention_mask=mask, use_cache=False).logits
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=NOTHING)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def write(folder: Path) -> None:
    """Writes the trained model into a folder."""
    state = {name: tensor.float() for name, tensor in load_file(WEIGHTS).items()}
    checkpoints.write(folder, "Dream", config=CONFIG, changed=state, more=[MORE])
    say(folder)


def say(folder: Path, **says: Any) -> None:
    """Writes lacuna.json: six slots at first, and what else it ``says``."""
    (folder / "lacuna.json").write_text(json.dumps({"start": 6} | says))


if __name__ == "__main__":
    save_file({name: tensor.half() for name, tensor in train().items()}, WEIGHTS)
