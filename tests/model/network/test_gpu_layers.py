"""A transformer's passes on a GPU. Where there is none, Triton is interpreted and graphs are repeated calls."""

import sys
from collections.abc import Callable

import pytest
import torch
from msgspec.structs import replace
from tests.model import tiny, tiny_masks
from torch import Tensor

pytest.importorskip("triton")

from lacuna_kernels import gpu
from lacuna_model.network.arena import Arena, PassPart
from lacuna_model.network.assembly import State, build_transformer, fuse
from lacuna_model.network.gpu_layers import cuda_graph
from lacuna_model.network.linear import MASKS, DenseLinear, GpuLinear
from lacuna_model.network.transformer import Transformer

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CONFIG = replace(
    tiny.CONFIG, num_layers=2, hidden_size=16, intermediate_size=24, num_heads=2, num_kv_heads=1, attention_bias=True
)


@pytest.fixture(autouse=True)
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor counts as a tensor on a GPU, and keys have the order that they have there."""
    monkeypatch.setattr(gpu, "reads", lambda *tensors: True)
    monkeypatch.setattr(sys.modules["lacuna_kernels.operations"], "_multiplies", lambda device, dtype: False)
    monkeypatch.setattr("lacuna_model.network.gpu_layers.LEAST_LENGTH", 64)


@pytest.fixture
def soon_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes and parts of more than four rows count as wide: the interpreter takes long for 64."""
    for module in ("gpu_layers", "linear"):
        monkeypatch.setattr(f"lacuna_model.network.{module}.MAX_ROWS", 4)
    monkeypatch.setattr("lacuna_model.network.transformer.ROWS", (1, 2, 4))


class Recorder:
    """Counts the graphs that are recorded."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        self.count += 1
        return cuda_graph(run) if DEVICE.type == "cuda" else run


def narrow(fused: State) -> dict[str, Tensor]:
    """The same with every linear in bfloat16; embedding and norms are unchanged."""
    return {
        name: tensor.bfloat16() if name.endswith(".bias") or (tensor.ndim == 2 and name != "embedding") else tensor
        for name, tensor in fused.items()
    }


def both(recorder: Recorder | None = None, *, normed: bool = False) -> tuple[Transformer, Transformer]:
    """The same model in float32 in plain form, and with the kernels for GPUs."""
    config = replace(CONFIG, qk_norm=normed)
    tensors = {name: tensor.to(DEVICE) for name, tensor in fuse(tiny.state(config), config).items()}
    plain = build_transformer(
        config, tensors, linear=lambda name: DenseLinear(tensors[name], tensors.get(name + ".bias"))
    )
    fast = build_transformer(
        config, tensors, linear=lambda name: GpuLinear(tensors[name], None, tensors.get(name + ".bias"))
    )
    return plain, fast.on_gpu(recorder)


def arena(dtype: torch.dtype = torch.float32) -> Arena:
    return Arena(CONFIG, DEVICE, dtype)


@torch.inference_mode()
def read(model: Transformer, store: Arena, first: int, count: int, mask: Tensor | None) -> Tensor:
    """The states of ``count`` rows at the tail of a store, causally where there is no mask."""
    store.reserve(first + count)
    store.tail = first
    ids = [row * 7 % CONFIG.vocab_size for row in range(first, first + count)]
    return model.read(ids, range(first, first + count), [PassPart(count, store, mask, mask is None)]).states


@pytest.mark.usefixtures("soon_wide")
@pytest.mark.parametrize("normed", [False, True])
def test_wide_and_narrow_passes_equal_the_plain_form(normed: bool) -> None:
    recorder = Recorder()
    plain, fast = both(recorder, normed=normed)
    stores = arena(), arena()
    generator = torch.Generator().manual_seed(0)
    for first, count, masked in ((0, 7, False), (7, 3, True), (10, 1, False), (11, 6, True)):
        mask = (
            (torch.rand((count, first + count), generator=generator) < 0.5).tril(first).to(DEVICE) if masked else None
        )
        if mask is not None:
            mask[:, 0] = True
        expected, got = (
            read(model, store, first, count, mask) for model, store in zip((plain, fast), stores, strict=True)
        )
        assert got.dtype is torch.float32
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(stores[1].keys, stores[0].keys, atol=1e-4, rtol=1e-4)
    assert recorder.count == 2


def test_a_graph_serves_all_passes_of_its_rows_and_length_whatever_the_document() -> None:
    recorder = Recorder()
    plain, fast = both(recorder)
    for first in (0, 7):
        stores = arena(), arena()
        for store in stores:
            store.keys.fill_(0.3), store.values.fill_(0.2)
        for count in (3, 4):
            expected, got = (
                read(model, store, first, count, None) for model, store in zip((plain, fast), stores, strict=True)
            )
            torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
    assert recorder.count == 1
    read(fast, arena(), 62, 3, None)  # the context is longer
    assert recorder.count == 2


class Best:
    """Keeps the two greatest logits of each row, and their tokens; token 3 is ruled out where a row is early."""

    width = 4

    def restricted(self, logits: Tensor, early: Tensor) -> Tensor:
        logits[:, 3] = logits[:, 3].masked_fill(early, -1e4)
        return logits

    def rows(self, logits: Tensor) -> Tensor:
        values, ids = logits.topk(2)
        return torch.cat((values, ids.float()), dim=1)


@torch.inference_mode()
def test_a_graph_ends_with_what_is_kept_of_the_logits() -> None:
    recorder, digest, early = Recorder(), Best(), [True, False, True]
    _, fast = both(recorder)
    ids, positions = [5, 6, 9], [0, 1, 2]
    for is_first in (True, False):
        found = fast.read(ids, positions, [PassPart(3, arena(), causal=True)], early, digest)
        assert found.recorded is is_first
        logits = digest.restricted(fast.head(found.states), torch.tensor(early, device=DEVICE))
        assert found.logits is not None
        assert found.kept is not None
        assert torch.equal(found.logits, logits)
        assert torch.equal(found.kept, digest.rows(logits))
    assert recorder.count == 1
    found = fast.read(ids, positions, [PassPart(3, arena(), causal=True)])
    assert found.kept is None
    assert recorder.count == 2


@torch.inference_mode()
def test_rows_read_alone_and_beside_others_have_the_same_bits_whatever_their_masks() -> None:
    """A row sees those of its store that its mask shows; a mask that shows all up to the row is as good as none."""
    _, fast = both(Recorder())
    ids = [5, 6, 9]
    masks = [None, torch.ones((3, 8), dtype=torch.bool).tril(5), torch.ones((3, 8), dtype=torch.bool).tril(5)]
    masks[2][:, 1:4] = False  # type: ignore[index]
    found: list[list[Tensor]] = []
    for mask in masks:
        for rows in (3, 1):
            store = arena()
            store.keys[:, :, :5], store.values[:, :, :5] = 0.3, torch.arange(5, device=DEVICE)[:, None] / 5
            states = []
            for first in range(0, 3, rows):
                store.tail, last = 5 + first, first + rows
                own = None if mask is None else mask[first:last, : 5 + last]
                part = PassPart(rows, store, own, causal=own is None)
                states.append(fast.read(ids[first:last], range(5 + first, 5 + last), [part]).states)
            found.append([torch.cat(states), store.keys, store.values])
    causal, *_, masked, alone = found
    for one, expected in ((found[1], causal), (found[2], causal), (found[3], causal), (alone, masked)):
        assert all(map(torch.equal, one, expected))
    assert not torch.equal(causal[0], masked[0])


@pytest.mark.usefixtures("soon_wide")
def test_mask_rows_equal_those_of_the_plain_form_and_change_no_token_before_them() -> None:
    masks, recorder = tiny_masks.rows(CONFIG, device=DEVICE.type), Recorder()
    plain, fast = both(recorder)
    pairs = [(model, model.with_additions(MASKS, *masks)) for model in (plain, fast)]
    for count, gated in ((3, 2), (4, 1), (4, 3), (7, 4)):
        ids = [*range(5, 5 + count - gated), *range(-1, -1 - gated, -1)]
        found = []
        for without, model in pairs:
            states = []
            for used, given in ((model, ids), (without, ids[: count - gated])):
                store = arena()
                store.keys.fill_(0.3), store.values.fill_(0.2)
                store.tail = 2
                with torch.inference_mode():
                    places = range(2, 2 + len(given))
                    states.append(used.read(given, places, [PassPart(len(given), store, causal=True)]).states)
            near = 0.0 if without is fast and count <= 4 else 1e-5
            torch.testing.assert_close(states[0][: count - gated], states[1], atol=near, rtol=near)
            found.append(states[0])
        torch.testing.assert_close(found[1], found[0], atol=1e-4, rtol=1e-4)
    # Of four rows, however many of them are mask rows; without any of one and of four. The wide pass is none.
    assert recorder.count == 3


def test_rows_of_tokens_have_their_additions_in_a_graph_whatever_kinds_are_beside_them() -> None:
    recorder, found = Recorder(), []
    kinds = ["", "infill", "infill"]
    for model in both(recorder):
        for kind, seed in (("infill", 1), ("edit", 2)):
            added, _ = tiny_masks.rows(CONFIG, seed=seed, device=DEVICE.type)
            model = model.with_additions(kind, added)
        model = model.with_additions(MASKS, *tiny_masks.rows(CONFIG, device=DEVICE.type))
        recorder.count, states = 0, []
        for more, ids in (([], []), (["edit"], [9]), ([""], [-1])):
            store = arena()
            given, named = [5, 6, 7, *ids], [*kinds, *more]
            with torch.inference_mode():
                part = PassPart(len(given), store, causal=True, kinds=named)
                states.append(model.read(given, range(len(given)), [part]).states)
        assert torch.allclose(states[1][:3], states[0], atol=1e-6)
        found.append(states)
    assert recorder.count == 3
    assert all(torch.equal(states[:3], found[1][0]) for states in found[1])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_parts_of_several_documents_share_a_graph() -> None:
    recorder = Recorder()
    plain, fast = both(recorder)
    found = []
    for model in (plain, fast):
        stores = [arena(), arena()]
        for store, tail in zip(stores, (0, 4), strict=True):
            store.tail = tail
        mask = torch.ones((1, 5), dtype=torch.bool, device=DEVICE)
        parts = [PassPart(2, stores[0], causal=True), PassPart(1, stores[1], mask)]
        with torch.inference_mode():
            found.append(model.read([5, 6, 9], [0, 1, 4], parts).states)
    torch.testing.assert_close(found[1], found[0], atol=1e-4, rtol=1e-4)
    assert recorder.count == 1


def test_the_heads_logits_are_sums_in_float32_for_any_number_of_rows() -> None:
    tensors = {name: tensor.to(DEVICE) for name, tensor in narrow(fuse(tiny.state(CONFIG), CONFIG)).items()}
    head = build_transformer(CONFIG, tensors).head
    assert isinstance(head, GpuLinear)
    x = torch.randn((70, 16), generator=torch.Generator().manual_seed(0)).to(DEVICE).bfloat16().float()
    expected = x @ tensors["head"].float().T
    # In bfloat16 the sums would be a hundred times as far off.
    torch.testing.assert_close(head(x), expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(head(x[:3]), expected[:3], atol=1e-4, rtol=1e-4)
