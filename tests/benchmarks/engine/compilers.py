"""The command ``compilers``: passes with the kernels as this system's compiler builds them and as a wheel has them.

Both take turns, so that a change of the clock rate affects both; their logits must have the same bits.
"""

import runpy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec
import numpy as np
import torch
from rich.table import Table
from tests.benchmarks.engine.passes import milliseconds, name_of, works
from torch import Tensor

from lacuna_kernels import instruction_sets, native
from lacuna_kernels.instruction_sets import InstructionSet
from lacuna_model.backends.readers import Loaded
from lacuna_model.core.errors import RequestError

HOOK = Path(__file__).parents[3] / "kernels/hatch_build.py"
PLATFORM = "manylinux_2_28_x86_64"
# Every way in which rows fall into tiles, and a pass of many tiles.
ROWS = (*range(1, 17), 32)


class CompilerCost(msgspec.Struct, frozen=True):
    """Milliseconds (p50) of a work with the kernels of both compilers; ``same``: whether all bits of its logits are."""

    rows: int
    system_ms: float
    wheel_ms: float
    same: bool


@contextmanager
def with_instructions(name: str) -> Iterator[InstructionSet]:
    """Models that are loaded in the block have kernels for these instructions, "" for the best that this CPU has.

    Raises RequestError where the CPU does not have the instructions.
    """
    known = {found.name: found for found in native.supported()}
    chosen = known.get(name or next(iter(known), ""))
    if chosen is None:
        raise RequestError(f"this CPU has no {name or 'instructions for the kernels'}; it has: {', '.join(known)}")
    with patch.object(native, "INSTRUCTION_SETS", (chosen,)):
        yield chosen


@contextmanager
def of_a_wheel(folder: Path, instructions: InstructionSet) -> Iterator[None]:
    """Models that are loaded in the block have the kernels of a wheel, compiled into ``folder``.

    Raises CalledProcessError where the compiler fails.
    """
    hook = runpy.run_path(str(HOOK))
    with patch.object(instruction_sets, "BUILT", folder):
        hook["compile_for"](hook["PLATFORMS"][PLATFORM][0], instructions, instructions.built)
        yield


@torch.inference_mode()
def bench_compilers(system: Loaded, wheel: Loaded, *, context_tokens: int = 256, runs: int = 15) -> list[CompilerCost]:
    """Time the encoding of a context and passes over a gap in it with two loaded models, in turns.

    Raises RequestError for an open checkpoint.
    """
    costs = []
    pairs = zip(*(works(model, context_tokens, ROWS, documents=())[1] for model in (system, wheel)), strict=True)
    for one, other in pairs:
        logits = [work.run() for work in (one, other)]
        same = all(torch.equal(logits[0], found) for found in logits[1:] if isinstance(found, Tensor))
        count = runs if one.rows else max(runs // 3, 1)
        times = np.array([[milliseconds(work) for work in (one, other)] for _ in range(count)])
        ours, theirs = np.median(times, axis=0).tolist()
        costs.append(CompilerCost(one.rows, ours, theirs, same))
    return costs


def table(costs: Sequence[CompilerCost], instructions: InstructionSet) -> Table:
    """Returns the costs as a table."""
    grid = Table(title=f"Passes with the kernels of this system's compiler and of a wheel, {instructions.name}")
    for name in ("what", "system ms", "wheel ms", "times as long", "same bits"):
        grid.add_column(name, justify="left" if name == "what" else "right")
    for cost in costs:
        times = (f"{cost.system_ms:.1f}", f"{cost.wheel_ms:.1f}", f"{cost.wheel_ms / cost.system_ms:.3f}")
        grid.add_row(name_of(cost.rows, 1), *times, "yes" if cost.same else "NO")
    return grid
