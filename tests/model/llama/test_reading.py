"""Models that libllama reads: what a fill, the gap buffer, several gaps and requests beside each other get of them."""

import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim

from lacuna_model.core.context import finished
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import DecodeOptions, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim, load_fim
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.llama.library import Library
from lacuna_model.llama.loading import LoadedLlama, load_llama
from lacuna_model.llama.tracks import SEQUENCES, Cells
from lacuna_model.readers import AUTO, LLAMA, load

from . import shapes

pytestmark = pytest.mark.usefixtures("cache")
TEXT = tiny.CODE * 3
BEFORE, AFTER = TEXT[:900], TEXT[900:]
KINDS = ("qwen2", *shapes.NAMES)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shapes")
    found = {name: shapes.write(folder / f"{name}.gguf", name) for name in shapes.NAMES}
    return {**found, "qwen2": gguf_files.write_fim(folder / "qwen2.gguf")}


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, files: dict[str, Path]) -> LoadedLlama:
    return load_llama(files[request.param], request.param, threads=1)


@pytest.fixture
def both(files: dict[str, Path]) -> tuple[LoadedFim, LoadedFim]:
    """The same weights, read by libllama and by our own layers."""
    own = load_fim(files["qwen2"], "own", threads=1, precision="float32")
    return load_llama(files["qwen2"], "libllama", threads=1), own


def plain(model: LoadedFim, ids: list[int]) -> torch.Tensor:
    """The logits [n, V] of one pass over a whole prompt."""
    reader = model.tracks()
    track = reader.new()
    track.become(ids, 0)
    return reader.logits(reader.read([[track]])[track])


def prompt(model: LoadedFim, before: str, after: str) -> list[int]:
    encode, fim = model.tokenizer.encode, model.fim
    return [*prompt_head(fim, model.tokenizer, (), "a.py"), *encode(before), fim.suffix, *encode(after), fim.middle]


def request(
    text: str, *places: int, tokens: int = 8, least: int = 0, syntax: bool = True, path: str = "a.py"
) -> InfillRequest:
    regions = tuple(Region(place, place, min_tokens=least, max_tokens=tokens) for place in places)
    return InfillRequest(text, regions, path=path, options=DecodeOptions(deadline_ms=0, syntax=syntax))


@pytest.mark.parametrize("places", [(), (40, 300), (40, 300, 600)])
def test_fills_are_those_of_our_own_layers(both: tuple[LoadedFim, LoadedFim], places: tuple[int, ...]) -> None:
    asked = request(TEXT, *(places or (40,)))
    one, other = (Engine(model).fill(asked) for model in both)
    assert one.fills == other.fills
    assert all(one.fills)


def test_typing_reads_what_was_typed_and_the_near_suffix(model: LoadedLlama) -> None:
    engine = Engine(model)
    encoded = []
    for typed in ("", "x", "x = ", "x = value"):
        found = engine.fill(request(BEFORE + typed + AFTER, len(BEFORE + typed), syntax=False))
        assert found.status == "ok"
        encoded.append(found.stats.context_tokens - found.stats.cached_tokens)
    assert encoded[0] > 250
    assert model.cells is not None
    if model.cells.can_shift:
        assert all(count < 40 for count in encoded[1:])


@pytest.mark.parametrize("near", [10_000, 8])
def test_the_gap_buffer_moves_the_far_suffix(model: LoadedLlama, near: int) -> None:
    context = FimContext(model.tracks(), model.tokenizer, model.fim, near=near)
    for typed in ("", "x", "x = ", "x = value", "x ="):
        finished(context.updating(tiny_fim.laid_out(model, BEFORE + typed, AFTER)))
        chain, track = context.chain(0), context.reader.new()
        track.become([model.fim.middle], sum(len(one.ids) for one in chain))
        told = context.reader.logits(context.reader.read([[*chain, track]])[track])[-1]
        context.reader.drop(track)
        ids = [token for one in chain for token in one.ids]
        expected = plain(model, [*ids, model.fim.middle])[-1]
        if near > 8:
            torch.testing.assert_close(told, expected, atol=0.05, rtol=0.05)
        else:  # the far suffix has not seen what was typed
            assert (told - expected).norm() / expected.norm() < 0.5


def num_free(own: Cells) -> int:
    """How many sequences can be taken."""
    taken: list[int] = []
    with contextlib.suppress(RequestError):
        while True:
            taken.append(own.take())
    own.give(taken)
    return len(taken)


def read_once(model: LoadedLlama) -> None:
    """Read three tokens with a reader that is dropped."""
    reader = model.tracks()
    track = reader.new()
    track.become([5, 6, 7], 0)
    reader.read([[track]])
    del reader, track
    gc.collect(0)


def test_what_is_dropped_beside_a_pass_calls_nothing(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_llama(files["qwen2"], "tiny", threads=1)
    assert model.cells is not None
    dropped, during = [model.tracks()], list[str]()
    track = dropped[0].new()
    track.become([5, 6, 7], 0)
    dropped[0].read([[track]])
    del track
    call = Library.__call__

    def calling(library: Library, name: str, *arguments: object) -> object:
        during.append(name)
        if name == "decode":
            dropped.clear()  # as a collection in another thread may, while the library computes
            gc.collect()
            during.append("decoded")
        return call(library, name, *arguments)

    monkeypatch.setattr(Library, "__call__", calling)
    read_once(model)
    assert during[during.index("decode") + 1] == "decoded"
    read_once(model)
    assert num_free(model.cells) == SEQUENCES - 1


def test_a_memory_that_cannot_shift_reads_the_suffix_again(both: tuple[LoadedFim, LoadedFim]) -> None:
    model, own = both
    assert isinstance(model, LoadedLlama)
    assert model.cells is not None
    model.cells.can_shift = False
    engines = Engine(model), Engine(own)
    for typed in ("", "x", "x = "):
        one, other = (engine.fill(request(BEFORE + typed + AFTER, len(BEFORE + typed))) for engine in engines)
        assert one.status == "ok"
    read = [found.stats.context_tokens - found.stats.cached_tokens for found in (one, other)]
    assert read[0] > 100 > read[1]


@pytest.mark.parametrize(("kind", "by"), [("qwen2", LoadedFim), ("granite", LoadedLlama)])
def test_a_smaller_model_drafts(files: dict[str, Path], kind: str, by: type[LoadedFim], tmp_path: Path) -> None:
    """One of our own layers for one of libllama, and one of libllama for another one."""
    path, backend = str(files[kind]), LLAMA if kind == "qwen2" else AUTO
    small = path if kind == "qwen2" else str(shapes.write(tmp_path / "small.gguf", "starcoder2", seed=3))
    alone, drafted = (load(path, threads=1, backend=backend, draft_model=one) for one in (AUTO, small))
    assert isinstance(drafted, LoadedLlama)
    assert type(drafted.smaller) is by
    asked = request(TEXT, 300, 900, least=12, tokens=16, syntax=False)
    assert Engine(alone).fill(asked).fills == Engine(drafted).fill(asked).fills


@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[None]:
    yield
    gc.collect()
