"""A default start on a second device, with nothing set, and each kind of request after it."""

from collections.abc import Callable, Iterator

import pytest
import torch

from lacuna_kernels import gpu
from lacuna_model.core.errors import DeviceError
from lacuna_model.core.params import FillGaps, InfillRequest, InfillResult, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.loading import FREQUENT_TOKENS, LoadedFim
from lacuna_model.hub import models

from . import started, tiny
from .elsewhere import Elsewhere

# The gaps of a request: the first is within a word. Few tokens, as each row has 151,936 logits.
GAPS = (Region(60, 63, max_tokens=3), Region(150, 163, max_tokens=3))
TEXT = tiny.CODE[:200]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache with the models of the registry, which are tiny."""
    with pytest.MonkeyPatch.context() as patch:
        started.registry(tmp_path_factory.mktemp("cache"), patch)
        yield


@pytest.fixture(scope="module")
def engine(cache: None) -> Iterator[Engine]:
    """The engine of a start with nothing set, without Triton."""
    with pytest.MonkeyPatch.context() as patch, Elsewhere():
        recorder = started.pretend(patch)
        yield Engine.load(models.LARGE_MODEL)
        assert not recorder.count


def ask(engine: Engine, request: InfillRequest) -> InfillResult:
    with Elsewhere():
        found = engine.fill(request)
    assert found.status in ("ok", "no_valid_fill")
    return found


def test_the_model_that_drafts_is_cut_and_all_that_drafts_knows_its_head(engine: Engine) -> None:
    model = engine.model
    assert isinstance(model, LoadedFim)
    assert model.smaller is not None
    assert started.layers(model.smaller.transformer).outputs == FREQUENT_TOKENS
    assert (model.answers, model.smaller.answers) == (True, False)
    assert model.cache_dtype is model.smaller.cache_dtype is torch.bfloat16
    assert model.smaller.transformer.masks is not None


def test_an_editor_request_that_is_due_is_answered_by_a_model_with_all_tokens(engine: Engine) -> None:
    """Whatever is due: the model with its whole window, or with the nearest text, never the one that only drafts."""
    for due in (1, 100_000):
        found = ask(engine, InfillRequest(TEXT, GAPS[:1], FillGaps(open=True, due_ms=due), path=f"{due}.txt"))
        assert found.stats.model == models.LARGE_MODEL


def test_a_start_where_our_kernels_are_not_for_the_device(cache: None) -> None:
    with pytest.MonkeyPatch.context() as patch, Elsewhere():
        started.find(patch)
        patch.setattr(gpu, "runs_on", lambda device: False)
        loaded = Engine.load(models.LARGE_MODEL)
        ask(loaded, InfillRequest(TEXT, GAPS[:1], path="fill.txt"))


def test_a_start_with_kernels(cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted, a longer context takes minutes. :mod:`tests.model.test_elsewhere` has a fill in bfloat16."""
    pytest.importorskip("triton")
    recorder = started.pretend(monkeypatch, triton=True)
    with Elsewhere():
        loaded = Engine.load(models.LARGE_MODEL, keys_and_values="8bit")
    assert isinstance(loaded.model, LoadedFim)
    assert loaded.model.smaller is not None
    assert loaded.model.cache_dtype is loaded.model.smaller.cache_dtype is torch.int8
    ask(loaded, InfillRequest(TEXT[:40], (Region(18, 21, max_tokens=2), Region(30, 33, max_tokens=2)), path="gaps.txt"))
    assert recorder.count


def on_a_cpu(patch: pytest.MonkeyPatch) -> None:
    """Another test's fixture may still pretend a GPU."""
    patch.setattr(gpu, "runs_on", lambda device: False)


@pytest.mark.parametrize(
    ("pretend", "why"),
    [(on_a_cpu, "this is cpu"), (started.pretend, "pretended")],
    ids=["on a CPU", "without Triton"],
)
def test_keys_in_8_bit_are_refused_where_no_kernel_reads_them(
    cache: None, monkeypatch: pytest.MonkeyPatch, pretend: Callable[[pytest.MonkeyPatch], object], why: str
) -> None:
    pretend(monkeypatch)
    said = f"^keys and values in 8 bit need a CUDA GPU with Triton \\({why}\\)$"
    with Elsewhere(), pytest.raises(DeviceError, match=said):
        Engine.load(models.LARGE_MODEL, keys_and_values="8bit")
