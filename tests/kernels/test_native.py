import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import silu

from lacuna_kernels import compiling, empty_keys, fold_mask, native, reference, rms_norm, rotary
from lacuna_kernels.native import (
    AddedRows,
    KeptRows,
    LayerParts,
    NativeKernels,
    NativeLayers,
    PackedLinear,
)
from lacuna_model.core.context import finished

HEADS, GROUPS, WIDTH, HIDDEN, INNER, EPS = 6, 2, 32, 96, 224, 1e-5
RANK, NUM_LAYERS = 64, 2
CPU, BFLOAT16 = torch.device("cpu"), torch.bfloat16

pytestmark = pytest.mark.skipif(not native.supported(), reason="this CPU has none of the instructions")


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def whole_numbers(*shape: int, seed: int = 0) -> Tensor:
    """Integers that 8 bit holds exactly, because the first of every row is 127, the largest code."""
    numbers = torch.randint(-127, 128, shape, generator=torch.Generator().manual_seed(seed))
    numbers[:, 0] = 127
    return numbers


class Linear:
    """A linear of the layer, packed and dense. The dense weights are the packed codes times their scale."""

    def __init__(self, kernels: NativeKernels, out: int, width: int, seed: int, size: float = 1.0) -> None:
        codes = whole_numbers(out, width, seed=seed)
        scale = torch.full((out,), size * width**-0.5 / 70)
        self.packed: PackedLinear = kernels.bind(kernels.packed(codes.to(torch.int8)), scale, None)
        self.weight = codes * scale[:, None]


def close(got: Tensor, expected: Tensor) -> None:
    """Asserts an error below 2.5%, where 8-bit activations and bfloat16 keys stay; a wrong row or column does not."""
    assert got.shape == expected.shape
    assert (got - expected).norm() / expected.norm() < 0.025


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 40])
@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_of_whole_numbers_is_exact(kernels: NativeKernels, rows: int, bias: bool) -> None:
    x, codes = whole_numbers(rows, 96), whole_numbers(64, 96, seed=1)
    scale = 2.0 ** torch.arange(64).remainder(5)
    added = random(64, seed=2).round() if bias else None
    got = kernels.linear(x.float(), kernels.bind(kernels.packed(codes.to(torch.int8)), scale, added))
    assert torch.equal(got, (x @ codes.T) * scale + (0 if added is None else added))


@pytest.mark.parametrize("sign", [-1, 1])
def test_products_of_the_largest_codes_do_not_saturate(kernels: NativeKernels, sign: int) -> None:
    x, codes = torch.full((3, 64), 127.0), torch.full((32, 64), sign * 127, dtype=torch.int8)
    assert torch.equal(
        kernels.linear(x, kernels.bind(kernels.packed(codes), torch.ones(32), None)), x @ codes.float().T
    )


class Layers:
    """Layers, an arena with the keys and values of earlier passes, and the input rows of the next pass."""

    def __init__(self, kernels: NativeKernels, rows: int, tail: int) -> None:
        shapes = {
            "qkv": ((HEADS + 2 * GROUPS) * WIDTH, HIDDEN),
            "output": (HIDDEN, HEADS * WIDTH),
            "gate_up": (2 * INNER, HIDDEN),
            "down": (HIDDEN, INNER),
        }
        self.linears = [
            {name: Linear(kernels, *shape, seed=4 * layer + i) for i, (name, shape) in enumerate(shapes.items())}
            for layer in range(NUM_LAYERS)
        ]
        # What rows of two kinds have added, as a low and a high linear.
        self.added = [
            [
                {
                    name: (Linear(kernels, RANK, width, 90 + layer + kind), Linear(kernels, out, RANK, 97 - kind, 0.3))
                    for name, (out, width) in shapes.items()
                }
                for kind in range(2)
            ]
            for layer in range(NUM_LAYERS)
        ]
        self.norms = [[1 + 0.1 * random(HIDDEN, seed=2 * layer + i) for i in range(2)] for layer in range(NUM_LAYERS)]
        self.native = NativeLayers(
            kernels,
            [
                LayerParts(
                    first,
                    second,
                    {name: linear.packed for name, linear in linears.items()},
                    [{name: (low.packed, high.packed) for name, (low, high) in kind.items()} for kind in added],
                )
                for (first, second), linears, added in zip(self.norms, self.linears, self.added, strict=True)
            ],
            HEADS,
            GROUPS,
            EPS,
        )
        self.x = random(rows, HIDDEN, seed=4)
        self.angles = random(rows, WIDTH // 2, seed=5).repeat(1, 2)
        self.tail = tail
        # The arena is larger than what the rows may see. All other entries are NaN and must not matter.
        room = (NUM_LAYERS, GROUPS, tail + rows + 7, WIDTH)
        self.keys = empty_keys(room, CPU, BFLOAT16)
        self.keys.copy_(random(*room, seed=6))
        self.values = random(*room, seed=7).bfloat16()
        for store in (self.keys, self.values):
            store[:, :, tail:] = float("nan")

    def run(
        self,
        mask: Tensor | None = None,
        rows: slice = slice(None),
        added: Sequence[AddedRows] = (),
        moved: Sequence[tuple[int, Tensor]] = (),
    ) -> Tensor:
        """Runs the kernels on some of the rows. The arena must hold the keys and values of the rows before them.

        ``moved`` has for runs of keys the end of each, and the angles [D / 2] by which they have moved.
        """
        first, last, _ = rows.indices(len(self.x))
        end = self.tail + last
        folded = None if mask is None else fold_mask(mask[rows, :end], 1, BFLOAT16)
        angles = self.angles[rows]
        x = self.x[rows]
        turned = torch.stack([angles, *(angles - by.repeat(2) for _, by in moved)])
        runs = np.array([(end, place) for place, (end, _) in enumerate(moved, start=1)] + [(end, 0)])
        kept = KeptRows(len(x), self.keys, self.values, self.tail + first, folded, runs if moved else None)
        return finished(self.native.in_turns(x, turned.cos(), turned.sin(), [kept], added))

    def expected(self, mask: Tensor | None = None, added: Sequence[AddedRows] = ()) -> Tensor:
        """The same in float32, except for the keys and values of earlier passes."""

        def product(layer: int, name: str, x: Tensor) -> Tensor:
            y = x @ self.linears[layer][name].weight.T
            for first, count, kind in added:
                low, high = self.added[layer][kind][name]
                y[first : first + count] += x[first : first + count] @ low.weight.T @ high.weight.T
            return y

        x, before = self.x, slice(self.tail)
        for layer, (first, second) in enumerate(self.norms):
            states = product(layer, "qkv", rms_norm(x, first, EPS))
            query, key, value = states.view(len(x), -1, WIDTH).transpose(0, 1).split([HEADS, GROUPS, GROUPS])
            query, key = (rotary(part, self.angles.cos(), self.angles.sin()) for part in (query, key))
            keys = torch.cat((self.keys[layer, :, before].float(), key), dim=1)
            values = torch.cat((self.values[layer, :, before].float(), value), dim=1)
            mixed = reference.attention(query[None], keys[None], values[None], mask)[0].transpose(0, 1).flatten(1)
            x = x + product(layer, "output", mixed)
            gate, up = product(layer, "gate_up", rms_norm(x, second, EPS)).chunk(2, dim=-1)
            x = x + product(layer, "down", silu(gate) * up)
        return x


@pytest.mark.parametrize("tail", [0, 31, 32, 63, 300])
@pytest.mark.parametrize("rows", [1, 8, 11])
def test_layers_are_attention_and_mlp(kernels: NativeKernels, rows: int, tail: int) -> None:
    layers = Layers(kernels, rows, tail)
    given = layers.x.clone()
    close(layers.run(), layers.expected())
    assert torch.equal(layers.x, given)


@pytest.mark.parametrize(
    ("rows", "spans"),
    [
        (8, [(1, 7, 0)]),
        (9, [(8, 1, 0)]),
        (5, [(0, 5, 1)]),
        (20, [(6, 14, 0)]),
        (20, [(3, 9, 1), (12, 8, 0)]),
        (40, [(2, 1, 0), (4, 17, 1), (30, 3, 1)]),
    ],
)
def test_rows_have_the_additions_of_their_kind_and_none_before_them_knows_of_these(
    kernels: NativeKernels, rows: int, spans: list[tuple[int, int, int]]
) -> None:
    layers = Layers(kernels, rows, 40)
    added = [AddedRows(*span) for span in spans]
    real, mask = spans[0][0], torch.ones((rows, 40 + rows), dtype=torch.bool).tril(40)
    plain = layers.run(mask)
    stores = [store[:, :, : 40 + real].clone() for store in (layers.keys, layers.values)]
    got = layers.run(mask, added=added)
    close(got, layers.expected(mask, added))
    assert torch.equal(got[:real], plain[:real])
    assert not torch.equal(got[real:], plain[real:])
    for store, before in zip((layers.keys, layers.values), stores, strict=True):
        assert torch.equal(store[:, :, : 40 + real].nan_to_num(), before.nan_to_num())


@pytest.mark.parametrize("pause", [1, 2])
def test_rows_that_are_kept_alone_have_the_same_keys_and_values(kernels: NativeKernels, pause: int) -> None:
    whole, alone = Layers(kernels, 9, 40), Layers(kernels, 9, 40)
    whole.run()
    kept = KeptRows(9, alone.keys, alone.values, alone.tail, None, None)
    cos, sin = alone.angles.cos()[None], alone.angles.sin()[None]
    assert len(list(alone.native.in_turns(alone.x, cos, sin, [kept], layers=pause, kept_alone=True))) == 2 // pause - 1
    assert torch.equal(alone.keys.nan_to_num(), whole.keys.nan_to_num())
    assert torch.equal(alone.values.nan_to_num(), whole.values.nan_to_num())


@pytest.mark.parametrize("ends", [(1,), (32, 64), (7, 40, 44), (70,)])
@pytest.mark.parametrize("rows", [1, 9])
def test_keys_of_moved_tokens_are_seen_where_they_are(kernels: NativeKernels, rows: int, ends: tuple[int, ...]) -> None:
    tail = 75
    layers, there = (Layers(kernels, rows, tail) for _ in range(2))
    moved = [(end, 3 * random(WIDTH // 2, seed=50 + end)) for end in ends]
    begun = 0
    for end, by in moved:
        run = slice(begun, begun := end)
        there.keys[:, :, run] = rotary(there.keys[:, :, run].float(), by.repeat(2).cos(), by.repeat(2).sin()).bfloat16()
    mask = torch.ones((rows, tail + rows), dtype=torch.bool).tril(tail)
    close(layers.run(mask, moved=moved), there.expected(mask))
    if ends == (1,):
        return
    # Keys of one distance are the same wherever their run begins.
    (end, by), before = moved[-1], layers.run(mask, moved=moved)
    assert torch.equal(Layers(kernels, rows, tail).run(mask, moved=[*moved[:-1], (end - 1, by), (end, by)]), before)


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_any_number_of_threads_gives_the_same_result(kernels: NativeKernels, tmp_path: Path, threads: int) -> None:
    several = native.build(tmp_path, threads, [kernels.instructions])
    for added in ([], [AddedRows(4, 5, 0)], [AddedRows(1, 3, 1), AddedRows(4, 5, 0)]):
        assert torch.equal(Layers(several, 9, 40).run(added=added), Layers(kernels, 9, 40).run(added=added))


FORKING = """
import os, sys, pathlib, torch
from lacuna_kernels import native

def compute():
    return kernels.linear(torch.ones(3, 96), linear)

kernels = native.build(pathlib.Path(sys.argv[1]), 3)
linear = kernels.bind(kernels.packed(torch.ones((64, 96), dtype=torch.int8)), torch.ones(64), None)
before = compute()
if not (child := os.fork()):
    os._exit(0 if torch.equal(compute(), before) and torch.equal(compute(), before) else 1)
same = torch.equal(compute(), before)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not same)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_threads_of_its_own(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(native.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-P", "-c", FORKING, str(tmp_path)], check=True, timeout=120, env=environment)


def test_waiting_threads_leave_their_cores_to_other_programs(kernels: NativeKernels, tmp_path: Path) -> None:
    several = native.build(tmp_path, 4, [kernels.instructions])
    Layers(several, 9, 40).run()
    time.sleep(0.1)
    began = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - began < 0.25  # three threads that spin would take at least a core


def test_the_library_is_built_once_and_again_if_it_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.load(tmp_path / "kernels", 1) is not None
    (library,) = (tmp_path / "kernels").iterdir()
    library.unlink()
    library.write_bytes(b"no library")
    assert native.load(tmp_path / "kernels", 1) is not None
    monkeypatch.setenv("PATH", "")  # no compiler from here on
    assert native.load(tmp_path / "kernels", 1) is not None
    assert list((tmp_path / "kernels").iterdir()) == [library]


def test_without_a_writable_folder_the_library_is_built_for_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder, scratch = tmp_path / "kernels", tmp_path / "scratch"
    folder.write_text("a file where the folder should be")
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    kernels = native.load(folder, 1)
    assert kernels is not None
    assert list(scratch.iterdir()) == []
    assert caplog.messages == [f"{folder} is of no use (Not a directory): the kernels are compiled at every start"]
    assert torch.equal(Layers(kernels, 9, 40).run(), Layers(native.build(scratch), 9, 40).run())


@pytest.mark.parametrize("compiler", ["missing", "failing"])
def test_without_a_compiler_there_are_no_kernels(
    tmp_path: Path, compiler: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    if compiler == "failing":
        (tmp_path / "bin" / "cc").write_text("#!/bin/sh\necho no room >&2; exit 1\n")
        (tmp_path / "bin" / "cc").chmod(0o755)
    reason = {"missing": "no C compiler", "failing": "cc failed: no room"}[compiler]
    assert native.load(tmp_path / "kernels", 1) is None
    (said,) = caplog.messages
    assert said.startswith("the model runs without its own kernels, more slowly: ")
    assert said.endswith(reason)
    with pytest.raises(OSError, match=reason):
        native.build(tmp_path / "kernels")
    assert not any(Path(folder, name) for folder, _, names in os.walk(tmp_path / "kernels") for name in names)


def test_an_old_compiler_builds_for_instructions_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *newer, oldest = native.supported()
    unknown = "|".join(
        sorted({f"*{flag}*" for found in newer for flag in found.flags} - {f"*{flag}*" for flag in oldest.flags})
    )
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in {unknown or "none"}) exit 1; esac\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert native.build(tmp_path / "kernels").instructions is oldest


def test_a_compiler_that_hangs_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "hanging"
    compiler.write_text(f"#!/bin/sh\nread line\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr(compiling, "COMPILE_S", 3.0)
    assert native.load(tmp_path / "built", 1) is None
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 30
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "the compiler's child process still runs"
        time.sleep(0.02)
