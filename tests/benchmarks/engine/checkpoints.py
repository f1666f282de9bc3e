"""The command ``checkpoints``: times passes of a diffusion model over a whole text and over its slots alone.

The weights are random, in the shape of Qwen2.5-Coder 0.5B: what a pass costs does not depend on what it says.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from lacuna_kernels import native
from lacuna_kernels.four_bit import FourBitWeight
from lacuna_model.diffusion.sequence import ContextTokens
from lacuna_model.fim.preparing import prepared
from lacuna_model.hub import models
from lacuna_model.network.assembly import build_transformer, fuse
from lacuna_model.network.config import ModelConfig, shape_of
from lacuna_model.network.devices import HOST, cache_dtype, choose_threads
from lacuna_model.network.transformer import Transformer

SHAPE = ModelConfig(
    num_layers=24,
    hidden_size=896,
    intermediate_size=4864,
    num_heads=14,
    num_kv_heads=2,
    head_dim=64,
    vocab_size=151_936,
    rope_theta=1e6,
    attention_bias=True,
)
LAYER = ("attn_norm", "mlp_norm", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class CheckpointCost(msgspec.Struct, frozen=True):
    """Milliseconds of a pass over ``rows`` rows, with the logits of the slots, in one ``form`` of the weights.

    ``cached``: keys and values of the text are those of an earlier pass. ``megabytes`` are those of the weights.
    """

    form: str
    cached: bool
    rows: int
    ms_p50: float
    ms_p95: float
    megabytes: int


@dataclass(frozen=True)
class RandomWeights(Mapping[str, Tensor]):
    """Random tensors of a shape by our names, each made on access."""

    config: ModelConfig

    def __getitem__(self, name: str) -> Tensor:
        if name not in set(self):
            raise KeyError(name)
        size = shape_of(name, self.config)
        return torch.randn(size) * size[-1] ** -0.5 if len(size) == 2 else torch.ones(size)

    def four_bit(self, name: str) -> FourBitWeight | None:
        """None: they are in full precision."""

    def __iter__(self) -> Iterator[str]:
        yield from ("embedding", "final_norm")
        for index in range(self.config.num_layers):
            yield from (f"layers.{index}.{part}" for part in LAYER)
            yield from (f"layers.{index}.{part}.bias" for part in ("q_proj", "k_proj", "v_proj"))

    def __len__(self) -> int:
        return 2 + self.config.num_layers * (len(LAYER) + 3)


def bench_checkpoints(
    config: ModelConfig = SHAPE, *, context: int = 900, slots: int = 16, runs: int = 5, threads: int = 0
) -> list[CheckpointCost]:
    """Times passes in 8 bit and in float32, over a whole text of ``context`` tokens and over its slots alone."""
    return [
        cost
        for form in ("8 bit", "float32")
        for cost in _costs(form, config, context, slots, runs, threads or choose_threads())
    ]


@torch.inference_mode()
def _costs(form: str, config: ModelConfig, context: int, slots: int, runs: int, threads: int) -> list[CheckpointCost]:
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    weights, eight = RandomWeights(config), form == "8 bit"
    kernels = native.load(models.kernels_dir(), threads) if eight else None
    tensors = dict(prepared(weights, config, range(64), kernels)) if eight else fuse(weights, config)
    transformer = build_transformer(config, tensors, kernels=kernels)
    if transformer.is_native:
        torch.set_num_threads(1)
    kept = torch.bfloat16 if transformer.is_native else cache_dtype("int8" if eight else "float32", HOST)
    size = sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors.values()}.values()) >> 20
    texts = _texts(config, context)
    found = []
    for cached in (False, True):
        text = ContextTokens(transformer, kept, texts, shift=True, refresh=1 << 30 if cached else 1)
        work, rows = _pass(transformer, text, [1] * slots)
        times = _timed(work, runs)
        p50, p95 = np.percentile(times, [50, 95])
        found.append(CheckpointCost(form, cached, rows(), float(p50), float(p95), size))
    return found


def _texts(config: ModelConfig, context: int) -> list[list[int]]:
    """Two thirds of the context before a gap, and the rest behind it."""
    rng = random.Random(0)
    ids = [rng.randrange(config.vocab_size) for _ in range(context)]
    return [ids[: context * 2 // 3], ids[context * 2 // 3 :]]


def _pass(
    transformer: Transformer, text: ContextTokens, slots: Sequence[int]
) -> tuple[Callable[[], None], Callable[[], int]]:
    """A pass over a text with these tokens in its slots, and how many rows it had."""
    last = 0

    def work() -> None:
        nonlocal last
        rows = text.rows([slots], [0])
        last = len(rows.ids)
        ids, positions = torch.tensor([rows.ids]), torch.tensor(rows.positions)
        hidden = transformer.hidden(transformer.embed(ids), positions, [rows.part])[0]
        transformer.head(hidden[rows.outputs[0]])

    return work, lambda: last


def _timed(work: Callable[[], None], runs: int) -> list[float]:
    work()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1e3)
    return times


def table(costs: Sequence[CheckpointCost]) -> Table:
    """Returns the costs as a table."""
    grid = Table(title="Passes of a diffusion model")
    for name in ("weights", "reads", "rows", "p50 ms", "p95 ms", "MB"):
        grid.add_column(name, justify="left" if name in ("weights", "reads") else "right")
    for cost in costs:
        reads = "the slots" if cost.cached else "the whole text"
        numbers = (str(cost.rows), f"{cost.ms_p50:.1f}", f"{cost.ms_p95:.1f}", f"{cost.megabytes:,}")
        grid.add_row(cost.form, reads, *numbers)
    return grid
