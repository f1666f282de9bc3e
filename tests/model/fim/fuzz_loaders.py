"""Loads files that contradict themselves, and runs what loads: ``python -m tests.model.fim.fuzz_loaders SECONDS SEED``.

Only a WeightsError, or a pass that works, is right. :mod:`tests.model.fim.test_fuzz_loaders` runs this with the kernels
compiled for AddressSanitizer, which ends the process where C reads or writes outside of a tensor.
"""

import collections
import contextlib
import os
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from tests.model import checkpoints, gguf_files, tiny
from torch import Tensor

from lacuna_model.core.errors import WeightsError
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim, load_fim
from lacuna_model.hub import models

from . import tiny_fim

CONFIG = tiny_fim.IN_C  # with which everything runs in C
NUMBERS = (-1, 0, 1, 2, 3, 31, 32, 33, 48, 64, 96, 128, 512, 513, 4096, 262_144, 2**31, 2**40, 2**63 - 1)
OTHERS: tuple[Any, ...] = (None, "", "64", 0.5, float("inf"), [], [64], {}, True)
FOLDER_KEYS = (
    "num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
    "vocab_size", "max_position_embeddings", "rope_theta", "rms_norm_eps", "eos_token_id", "bos_token_id",
    "tie_word_embeddings", "rope_scaling", "rope_parameters", "model_type", "mask_token_id",
)  # fmt: skip
FILE_KEYS = (
    "qwen2.block_count", "qwen2.embedding_length", "qwen2.feed_forward_length", "qwen2.attention.head_count",
    "qwen2.attention.head_count_kv", "qwen2.attention.key_length", "qwen2.attention.value_length",
    "qwen2.rope.freq_base", "qwen2.rope.dimension_count", "qwen2.context_length", "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.bos_token_id", "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.tokens", "tokenizer.ggml.merges",
    "tokenizer.ggml.token_type", "tokenizer.ggml.pre",
)  # fmt: skip
SHAPED: tuple[Callable[[Tensor, Random], Tensor], ...] = (
    lambda tensor, random: tensor[: random.choice((1, len(tensor) // 2, len(tensor) - 1))],
    lambda tensor, random: torch.cat((tensor, tensor)),
    lambda tensor, random: tensor[..., : max(tensor.shape[-1] // 2, 1)],
    lambda tensor, random: torch.cat((tensor, tensor), dim=-1),
    lambda tensor, random: tensor.T if tensor.ndim == 2 else tensor[None],
    lambda tensor, random: tensor.flatten() if tensor.ndim == 2 else tensor.view(2, -1),
    lambda tensor, random: tensor[:0],
    lambda tensor, random: tensor * random.choice((0.0, 1e30, float("inf"), float("nan"))),
    lambda tensor, random: tensor.half(),
)


def changed_tensors(random: Random) -> dict[str, Tensor]:
    """One to three tensors by our names, of other shapes or beside those that belong there."""
    state = tiny.state(CONFIG)
    found = {}
    for name in random.choices(list(state), k=random.randint(1, 3)):
        found[name] = random.choice(SHAPED)(state[name], random).contiguous()
    if random.random() < 0.3:
        part = random.choice(("q_proj.bias", "down_proj.bias", "q_norm", "k_norm", "gate_proj.bias"))
        found[f"layers.{random.randrange(2)}.{part}"] = torch.ones(random.choice((1, 16, 32, 64, 96, 128)))
    return found


def changed_values(keys: Sequence[str], random: Random) -> dict[str, Any]:
    return {
        key: random.choice(random.choice((NUMBERS, OTHERS))) for key in random.choices(keys, k=random.randint(1, 2))
    }


def write_folder(path: Path, random: Random) -> None:
    values = changed_values(FOLDER_KEYS, random) if random.random() < 0.7 else {}
    tensors = changed_tensors(random) if not values or random.random() < 0.4 else {}
    checkpoints.write_fim(path, config=CONFIG, changed=tensors, **values)


def write_file(path: Path, random: Random) -> None:
    values = changed_values(FILE_KEYS, random) if random.random() < 0.7 else {}
    state = tiny.state(CONFIG) | (changed_tensors(random) if not values or random.random() < 0.4 else {})
    gguf_files.write(
        path, architecture="qwen2", config=CONFIG, vocabulary=tiny_fim.IN_C_VOCABULARY, state=state, fields=values
    )


def damage(path: Path, random: Random) -> None:
    """Change some bytes of a file, or of a file in a folder."""
    file = random.choice(sorted(path.iterdir())) if path.is_dir() else path
    data = bytearray(file.read_bytes())
    for _ in range(random.randint(1, 4)):
        data[random.randrange(min(len(data), 40_000))] = random.randrange(256)
    file.write_bytes(data)


def run(model: LoadedFim) -> None:
    """A pass over some tokens, and one after it."""
    context = FimContext(model.tracks(), model.tokenizer, model.fim)
    track = context.reader.new()
    ids = [*model.fim.start, model.fim.prefix, *model.tokenizer.encode(tiny.CODE)[:20]]
    with torch.inference_mode():
        for end in (min(len(ids) - 3, model.config.max_positions - 1), min(len(ids), model.config.max_positions)):
            track.become(ids[:end], 0)
            if not track.unread:
                continue
            context.reader.logits(context.reader.read([[track]])[track])


def case(folder: Path, random: Random) -> str:
    """Write, load and run one model; returns what became of it."""
    is_folder = random.random() < 0.5
    path = folder / ("model" if is_folder else "model.gguf")
    try:
        with contextlib.suppress(FileNotFoundError):
            (shutil.rmtree if path.is_dir() else os.unlink)(path)
        (write_folder if is_folder else write_file)(path, random)
    except (TypeError, ValueError, struct.error):  # a value that the format cannot hold
        return "not written"
    if random.random() < 0.2:
        damage(path, random)
    try:
        run(load_fim(path, "fuzzed", threads=1, precision=random.choice(("", "", "float32"))))
    except WeightsError as error:
        return "refused" if "\n" not in str(error) else "refused in several lines"
    return "ran"


def main(seconds: float, seed: int) -> None:
    until = time.monotonic() + seconds
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault(models.CACHE_VARIABLE, f"{folder}/cache")
        while time.monotonic() < until:
            seed += 1
            print(f"seed {seed}", file=sys.stderr, flush=True)
            counts[case(Path(folder), Random(seed))] += 1
    print(dict(counts))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
