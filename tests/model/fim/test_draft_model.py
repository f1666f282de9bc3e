"""A smaller model's drafts: they change the number of passes, never the fill, and are made once its prompt is read."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace as replace_field
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim

from lacuna_model.core.context import finished
from lacuna_model.core.errors import WeightsError
from lacuna_model.core.params import DecodeOptions, InfillRequest, InfillResult, ReadContext, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.context import LAST_ROWS, NEAREST, FimContext
from lacuna_model.fim.costs import PassCosts
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.hub import models
from lacuna_model.loading import rows_file
from lacuna_model.readers import NONE, Loaded, load, new_cache

from .test_context import logits_at


def drafted_by(smaller: int, seed: int = 0) -> LoadedFim:
    """The tiny model of one seed, with that of another as its smaller model."""
    return replace(tiny_fim.loaded(seed), costs=tiny_fim.Free(), smaller=tiny_fim.loaded(smaller))


def request(*cuts: tuple[int, int], text: str = tiny.CODE, drafter: bool = True, **more: object) -> InfillRequest:
    regions = tuple(Region(first, last, max_tokens=14) for first, last in cuts)
    options = DecodeOptions(**{"syntax": False, "prior": False, "drafter": drafter} | more)
    return InfillRequest(text=text, regions=regions, path="a.py", options=options)


def read_ahead(engine: Engine, asked: InfillRequest) -> InfillResult:
    """The fill of a request whose context was encoded before."""
    engine.fill(replace_field(asked, task=ReadContext()))
    return engine.fill(asked)


LONG = "x = 1\n" * 200


class Priced(PassCosts):
    """A pass takes so many milliseconds, and a token of context a part of that."""

    def __init__(self, row_ms: float, pass_ms: float = 10.0) -> None:
        super().__init__()
        for rows in (1, 8):
            super().saw_pass(rows, pass_ms)
        super().saw_reading(1000, 1000 * row_ms)

    def saw_pass(self, rows: int, ms: float, sharing: int = 1, *, masks: int = 0) -> None:
        pass

    def saw_reading(self, rows: int, ms: float) -> None:
        pass


def cold(text: str = LONG) -> FimContext:
    """The context of a model that drafts, in which nothing was read."""
    context = new_cache(drafted_by(1))
    assert isinstance(context, FimContext)
    finished(context.updating(tiny_fim.laid_out(tiny_fim.loaded(), text, "y = 2\n" * 60)))
    assert context.smaller is not None
    return context.smaller


def left_after(context: FimContext, worth_ms: float, row_ms: float = 1.0) -> tuple[bool, int]:
    """Whether drafts can be made once it has caught up, and how many tokens are missing then."""
    ready = finished(context.catching_up(0, worth_ms, Priced(row_ms)))
    return ready, context.num_missing(0)


def test_as_much_of_a_long_prompt_is_read_as_pays() -> None:
    whole = cold().num_missing(0)
    assert whole > 4 * max(NEAREST)
    assert left_after(cold(), 0.0, 0.1) == (False, whole)
    ready, missing = left_after(cold(), 200.0)
    assert ready
    assert whole - max(NEAREST) - 2 * LAST_ROWS <= missing < whole
    ready, missing = left_after(cold(), 100 * whole)
    assert ready
    assert missing <= LAST_ROWS
    assert left_after(cold(), 1.0) == (False, whole)


def test_what_was_read_in_part_is_read_again_for_a_fill_of_its_own() -> None:
    """Once it is updated, a context in which nearer tokens were read first is as one that was read in order."""
    text, rest = LONG, "y = 2\n" * 60
    layout = tiny_fim.unhealed(tiny_fim.laid_out(tiny_fim.loaded(), text, rest))
    for worth in (200.0, 1e6):
        context = cold()
        left_after(context, 200.0)
        left_after(context, worth)
        finished(context.updating(layout))
        plain = new_cache(tiny_fim.loaded(1))
        assert isinstance(plain, FimContext)
        finished(plain.updating(layout))
        torch.testing.assert_close(logits_at(context, 0), logits_at(plain, 0), rtol=1e-4, atol=1e-4)


def test_a_cold_fill_is_drafted_from_its_second_pass_on() -> None:
    plain = Engine(tiny_fim.loaded()).fill(request((1200, 1200), text=LONG))
    smaller = replace(tiny_fim.loaded(), costs=Priced(0.01, 1.0))
    model = replace(tiny_fim.loaded(), costs=Priced(1.0), smaller=smaller)
    found = Engine(model).fill(request((1200, 1200), text=LONG))
    assert found.fills == plain.fills
    assert found.stats.nfe <= plain.stats.nfe // 2 + 3


@pytest.fixture
def file(tmp_path: Path, cache: Path) -> Path:
    """A GGUF file of the tiny model, and a cache of its own."""
    return gguf_files.write_fim(tmp_path / "tiny.gguf")


def smaller_of(model: Loaded) -> str | None:
    assert isinstance(model, LoadedFim)
    return None if model.smaller is None else model.smaller.name


def test_a_named_model_drafts(file: Path) -> None:
    assert smaller_of(load(str(file), threads=1, draft_model=str(file))) == str(file)
    assert smaller_of(load(str(file), threads=1)) is None  # the registry's small model is larger


def test_a_named_model_of_other_tokens_is_one_line(file: Path, tmp_path: Path) -> None:
    tokens = ("other", *tiny_fim.VOCABULARY.tokens[1:])
    other = gguf_files.write_fim(tmp_path / "other.gguf", vocabulary=replace_field(tiny_fim.VOCABULARY, tokens=tokens))
    with pytest.raises(WeightsError, match=r"other\.gguf has other tokens than .*tiny\.gguf, so it cannot draft"):
        load(str(file), threads=1, draft_model=str(other))


def test_the_small_model_drafts_where_it_is_here(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = models.find(models.SMALL_MODEL)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    known = replace(info, parameters=1, filename="tiny.gguf", size=file.stat().st_size, sha256=sha256)
    monkeypatch.setattr(models, "MODELS", (known,))
    monkeypatch.setattr(rows_file, "shipped", lambda name, kind: None)  # it is that of the real model
    assert smaller_of(load(str(file), threads=1)) is None
    place = models.location(known)
    place.parent.mkdir(parents=True)
    place.write_bytes(file.read_bytes())
    assert smaller_of(load(str(file), threads=1)) == models.SMALL_MODEL
    assert smaller_of(load(str(file), threads=1, draft_model=NONE)) is None
